#!/usr/bin/env bash
# The papers' experiments with the embedded default, into build/bench: `make bench-quality`.
#   papers/recipes/quality.sh DATA
set -euo pipefail
data=$1
crag=${BIN:-.venv/bin}/crag
kept=build/bench
questions=$data/qa/popqa_dev.jsonl
web=(--web "$data/corpus/wikipedia.jsonl" --web "$questions")

# The embedded default, so no preset of a task; PopQA has no instruction that would be lost.
bench() {
  local table=$1 name=$2
  shift 2
  "$crag" bench "papers/tables/$table" --set task=default --output "$kept/$name" "$@"
}

bench main.toml:popqa popqa_without_web --data "$questions"
bench main.toml:popqa popqa --data "$questions" "${web[@]}"
bench corrective.toml:actions actions --data "$questions" "${web[@]}"
bench corrective.toml:operations operations --data "$questions" "${web[@]}"
bench corrective.toml:robustness robustness_without_web --data "$questions"
bench corrective.toml:robustness robustness --data "$questions" "${web[@]}"
bench corrective.toml:thresholds thresholds --data "$questions" "${web[@]}"
bench corrective.toml:efficiency efficiency --data "$questions" "${web[@]}" --limit 20

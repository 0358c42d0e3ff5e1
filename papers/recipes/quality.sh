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
  "$crag" bench "papers/tables/$table.toml" --set task=default --cache $kept/cache.sqlite \
    --output "$kept/$name" "$@"
}

bench popqa popqa_without_web --data "$questions"
bench popqa popqa --data "$questions" "${web[@]}"
bench actions actions --data "$questions" "${web[@]}"
bench operations operations --data "$questions" "${web[@]}"
bench robustness robustness_without_web --data "$questions"
bench robustness robustness --data "$questions" "${web[@]}"
bench thresholds thresholds --data "$questions" "${web[@]}"
bench k k --data "$questions" "${web[@]}"
bench judging judging --data "$data/qa/actions_dev.jsonl"
bench efficiency efficiency --data "$questions" "${web[@]}" --limit 20

#!/usr/bin/env bash
# Train Self-RAG's critic and generator on a small model (two hours on two cores).
#   papers/recipes/train_self_rag.sh DATA [FOLDER]
set -euo pipefail
reading=$1/reading
folder=${2:-build/self-rag}
bin=${BIN:-.venv/bin}
questions=("$reading/squad_train.jsonl" "$reading/squad2_unanswerable.jsonl")
held_out=(--dev "$reading/squad_dev.jsonl")
recipe=(--recipe papers/recipes/self_rag_small.toml)

mkdir -p "$folder"
"$bin/crag" reflect-data critic "${questions[@]}" "${held_out[@]}" --output "$folder/cases.jsonl" \
  --each 90 --most relevance=600 --most support=380
"$bin/crag" reflect-data critic "$reading/squad_dev.jsonl" --output "$folder/held_out.jsonl" --each 60
"$bin/crag" train critic "$folder/cases.jsonl" --dev "$folder/held_out.jsonl" \
  --output "$folder/critic" "${recipe[@]}"

"$bin/crag" index "$reading/squad_train.jsonl" --index "$folder/index"
"$bin/crag" reflect-data pairs "${questions[@]}" "${held_out[@]}" --output "$folder/pairs.jsonl" \
  --count 4200 --declined 0.3 --unsupported 0.14
"$bin/crag" reflect-data generator "$folder/pairs.jsonl" --truth "${questions[0]}" --truth "${questions[1]}" \
  --index "$folder/index" --output "$folder/records.jsonl" \
  --set passages=4 --set irrelevant=0 --set unsupported=1
"$bin/crag" train generator "$folder/records.jsonl" --output "$folder/generator" "${recipe[@]}" \
  --set base="$folder/critic"

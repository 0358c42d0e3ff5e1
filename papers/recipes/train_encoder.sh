#!/usr/bin/env bash
# Train an encoder like the packaged one: ask questions with a chat model, then learn them.
#   MODEL=name URL=http://127.0.0.1:8080/v1 papers/recipes/train_encoder.sh DATA [ENCODER]
# 1,024 questions a step want a GPU with 80 GB: then it is a minute. It needs the package index.
set -euo pipefail
data=$1
encoder=${2:-build/trained-encoder}
crag=${BIN:-.venv/bin}/crag
documentation=build/documentation
asking=(--model "${MODEL:-local}" --url "${URL:-http://127.0.0.1:8080/v1}")

mkdir -p "$encoder"
"$crag" train questions papers/recipes/documentation_packages.json --fetched $documentation \
  --each 40 --output "$encoder-asked.jsonl" "${asking[@]}"
"$crag" train questions papers/recipes/documentation_packages_more.json --fetched $documentation \
  --output "$encoder-asked-more.jsonl" "${asking[@]}"
"$crag" train reader-data "$data"/reading/squad_train.jsonl "$data"/qa/{popqa,nq}_train.jsonl \
  --output "$encoder-rows.jsonl" --seed 3
"$crag" train reader-data papers/recipes/documentation_packages.json --fetched $documentation \
  --output "$encoder-documentation.jsonl"
"$crag" train encoder "$encoder"-{asked,asked-more,rows,documentation}.jsonl --output "$encoder" \
  --set bf16=true

#!/usr/bin/env bash
# Train a sentence encoder on questions with their passages, and on documentation.
#   papers/recipes/train_encoder.sh DATA [ENCODER]
# 1,024 questions a step want a GPU with 80 GB: then it is a minute. It needs the package index.
set -euo pipefail
data=$1
encoder=${2:-build/trained-encoder}
crag=${BIN:-.venv/bin}/crag

mkdir -p "$encoder"
"$crag" train reader-data "$data"/reading/squad_train.jsonl "$data"/qa/{popqa,nq}_train.jsonl \
  --output "$encoder-rows.jsonl" --seed 3
"$crag" train reader-data papers/recipes/documentation_packages.json \
  --fetched build/documentation --output "$encoder-documentation.jsonl"
"$crag" train encoder "$encoder"-{rows,documentation}.jsonl --output "$encoder" --set bf16=true

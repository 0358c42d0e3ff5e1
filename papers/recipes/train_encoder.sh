#!/usr/bin/env bash
# Train a sentence encoder on questions with their passages, from the packaged one.
#   papers/recipes/train_encoder.sh DATA [ENCODER]
# 1,024 questions a step want a GPU with 80 GB: then it is a minute.
set -euo pipefail
data=$1
encoder=${2:-build/trained-encoder}
crag=${BIN:-.venv/bin}/crag

mkdir -p "$encoder"
"$crag" train reader-data "$data"/reading/squad_train.jsonl "$data"/qa/{popqa,nq}_train.jsonl \
  --output "$encoder-rows.jsonl" --seed 3
"$crag" train encoder "$encoder-rows.jsonl" --output "$encoder" --set start=encoder --set bf16=true

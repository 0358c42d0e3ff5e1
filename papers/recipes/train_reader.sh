#!/usr/bin/env bash
# Train and calibrate a reader on question sets, from the packaged one (two hours on two cores).
#   papers/recipes/train_reader.sh DATA [READER]
set -euo pipefail
data=$1
reader=${2:-build/reader}
crag=${BIN:-.venv/bin}/crag
development=(evaluator/dev_popqa_retr evaluator/dev_popqa_web evaluator/dev_bio evaluator/dev_nq qa/popqa_dev qa/covidqa_dev)
calibration=(evaluator/dev_bio evaluator/dev_nq qa/popqa_dev qa/covidqa_dev)
sets=(reading/squad_train reading/squad2_unanswerable reading/policyqa reading/timeqa qa/popqa_train qa/nq_train)

mkdir -p "$reader"
"$crag" train reader-data $(printf "$data/%s.jsonl " "${sets[@]}") --output "$reader.jsonl"
"$crag" train reader "$reader.jsonl" --output "$reader" --set start=reader --set start_share=0.5 \
  --set steps=2000 $(printf -- "--dev $data/%s.jsonl " "${development[@]}")
"$crag" calibrate $(printf "$data/%s.jsonl " "${calibration[@]}") --evaluator "$reader" --write

#!/usr/bin/env bash
# Train and calibrate a reader like the packaged one, in two rounds (three hours on two cores).
#   papers/recipes/train_reader.sh DATA [READER]
# It needs the package index, for the documentation that documentation_packages.json lists.
set -euo pipefail
data=$1
reader=${2:-build/reader}
crag=${BIN:-.venv/bin}/crag
development=(evaluator/dev_popqa_retr evaluator/dev_popqa_web evaluator/dev_bio evaluator/dev_nq qa/popqa_dev qa/covidqa_dev)
calibration=(evaluator/dev_bio evaluator/dev_nq qa/popqa_dev qa/covidqa_dev)

sets=(reading/squad_train reading/squad2_unanswerable reading/policyqa reading/timeqa qa/popqa_train qa/nq_train)
rows() { "$crag" train reader-data $(printf "$data/%s.jsonl " "${sets[@]}") "$@"; }

mkdir -p "$reader" "$reader-first"
rows --output "$reader-first.jsonl"
"$crag" train reader "$reader-first.jsonl" --output "$reader-first" --set steps=2000
"$crag" train reader-data papers/recipes/documentation_packages.json --fetched "$reader-documentation" \
  --output "$reader-documentation.jsonl"
rows --output "$reader.jsonl" --seed 1 --with "$reader-documentation.jsonl" --most 24000
"$crag" train reader "$reader.jsonl" --output "$reader" --set start="$reader-first" \
  --set start_share=0.5 --set steps=2250 --set seed=1 \
  $(printf -- "--dev $data/%s.jsonl " "${development[@]}")
"$crag" calibrate $(printf "$data/%s.jsonl " "${calibration[@]}") --evaluator "$reader" --write

#!/usr/bin/env bash
# Train Self-RAG's critic and generator on a small model, in two rounds (three hours on two cores).
#   papers/recipes/train_self_rag.sh DATA [FOLDER]
set -euo pipefail
reading=$1/reading
folder=${2:-build/self-rag}
bin=${BIN:-.venv/bin}
recipe=(--recipe papers/recipes/self_rag_small.toml)
held_out=(--dev "$folder/answerable.jsonl" --dev "$folder/unanswerable.jsonl")
truth=(--set passages=4 --set irrelevant=0 --set unsupported=1)

"$bin/python" -m crag.papers.studies.self_rag_data "$reading" --output "$folder"
"$bin/crag" reflect-data critic "$folder/critic.jsonl" "${held_out[@]}" \
  --output "$folder/cases.jsonl" --each 90 --most relevance=600 --most support=380
"$bin/crag" reflect-data critic "$folder/answerable.jsonl" --output "$folder/held_out.jsonl" --each 60
"$bin/crag" train critic "$folder/cases.jsonl" --dev "$folder/held_out.jsonl" \
  --output "$folder/critic" "${recipe[@]}"

generator_data() { # the name of a round, how many pairs, and shares that decline or are unsupported
  "$bin/crag" index "$folder/$1passages" --index "$folder/$1index"
  "$bin/crag" reflect-data pairs "$folder/$1pairs.jsonl" "$folder/look_alikes.jsonl" "${held_out[@]}" \
    --output "$folder/$1made_pairs.jsonl" --count "$2" --declined "$3" --unsupported "$4"
  "$bin/crag" reflect-data generator "$folder/$1made_pairs.jsonl" --truth "$folder/$1pairs.jsonl" \
    --truth "$folder/look_alikes.jsonl" --index "$folder/$1index" \
    --output "$folder/$1records.jsonl" "${truth[@]}"
}

generator_data "" 4200 0.3 0.14
"$bin/crag" train generator "$folder/records.jsonl" --output "$folder/first_round" "${recipe[@]}" \
  --set base="$folder/critic"
generator_data more_ 18000 0.5 0.12
"$bin/python" -m crag.papers.studies.self_rag_data "$folder/more_records.jsonl" \
  --output "$folder/drawn.jsonl"
"$bin/crag" train generator "$folder/drawn.jsonl" --output "$folder/generator" "${recipe[@]}" \
  --set base="$folder/first_round"

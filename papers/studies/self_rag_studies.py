"""Self-RAG's training studies (Fig. 3a, 4, Table 2): train variants of a generator.

    python papers/studies/self_rag_studies.py --records records.jsonl --pairs pairs.jsonl
        --index index --output studies [--recipe papers/recipes/self_rag_small.toml]
        [--sizes 400 800]

full           the records as `crag reflect-data generator` made them
no_retriever   their instructions with the plain output: it is trained without passages (Fig. 3a)
no_critic      the same, each instruction after the first passage of the index; no tokens (Fig. 3a)
llama2_ft      all pairs with their plain outputs (Table 2)
size_N         N of the records; a larger size has those of a smaller one (Fig. 4)

Each variant is trained with the same recipe. `crag bench` compares them on the papers' tasks, as
docs/guide/train-self-rag.md says: `full` and the sizes reflect; the others are chat models that
read retrieved passages, in the layout of papers/recipes/tuned_prompts. A variant that has a card in
`output` is not trained again, and one that was interrupted goes on.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from crag.factory.embeddings import choose_encoder
from crag.index import IndexRetriever, open_index
from crag.models.model_card import CARD
from crag.papers.files import read_records, save_model
from crag.papers.self_rag.critique_cases import shown
from crag.papers.self_rag.generator_data import (
    Pair,
    ReflectiveRecord,
    Retrieve,
)
from crag.papers.self_rag.language_model import (
    LanguageRecipe,
    language_card,
    language_recipe,
    load_base,
    train_language_model,
)
from crag.papers.self_rag.reflective_text import reflective_texts
from crag.papers.training import finish
from crag.parts import Passage
from crag.runtime.environment import Environment

PLAIN = ("no_retriever", "no_critic", "llama2_ft")
"""Variants without reflection tokens, by the names that rows of the experiments need."""


class Variant(NamedTuple):
    """What one model is trained on."""

    name: str
    records: list[ReflectiveRecord]


def main() -> None:
    """Train what is missing, and print what each variant learned from."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--index", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    given = parser.parse_args()
    changes = dict(setting.split("=", 1) for setting in given.set)
    recipe = language_recipe("generator", given.recipe, changes)
    environment = Environment()
    index = IndexRetriever(open_index(given.index, choose_encoder(environment)))

    def retrieve(query: str) -> list[Passage]:
        found = index.invoke(query, k=1)
        return [Passage(str(one.metadata.get("title", "")), one.page_content) for one in found]

    records = read_records(given.records, ReflectiveRecord)
    pairs = read_records(given.pairs, Pair)
    for variant in variants(records, pairs, retrieve, given.sizes):
        folder = given.output / variant.name
        if not (folder / CARD).is_file():
            train(variant, recipe, folder, given.records)
        print(json.dumps({"variant": variant.name, "records": len(variant.records)}), flush=True)


def variants(
    records: Sequence[ReflectiveRecord],
    pairs: Sequence[Pair],
    retrieve: Retrieve,
    sizes: Sequence[int],
) -> Iterator[Variant]:
    """Yield what each variant learns from; all but the sizes from the same instructions."""
    yield Variant("full", list(records))
    kept = {record.instruction for record in records}
    distinct = {pair.asked: pair for pair in pairs}
    plain = [pair for pair in distinct.values() if pair.asked in kept]
    yield Variant("no_retriever", [_record(pair) for pair in plain])
    found = [(pair, retrieve(pair.asked)) for pair in plain]
    yield Variant("no_critic", [_record(pair, first[0]) for pair, first in found if first])
    yield Variant("llama2_ft", [_record(pair) for pair in distinct.values()])
    order = list(records)
    random.Random(0).shuffle(order)  # noqa: S311 - a choice of examples, no secret
    for size in sizes:
        yield Variant(f"size_{size}", order[:size])


def _record(pair: Pair, passage: Passage | None = None) -> ReflectiveRecord:
    """Return a pair as it is trained on, after its passage, as `tuned_prompts` asks."""
    asked = pair.asked if passage is None else f"{shown(passage)}\n\n{pair.asked}"
    return ReflectiveRecord(instruction=asked, output=pair.output.strip())


def train(variant: Variant, recipe: LanguageRecipe, folder: Path, source: Path) -> None:
    """Train and save one variant; what stands between paragraph tags is not learned."""
    base = load_base(recipe)
    records = [(one.asked, one.output) for one in variant.records]
    texts = reflective_texts(base.tokenizer, records, recipe)
    trained = train_language_model(base, recipe, texts, folder)
    card = language_card("generator", recipe, {source: len(texts)})
    save_model(trained.model, trained.tokenizer, folder, card)
    finish(folder)


if __name__ == "__main__":
    main()

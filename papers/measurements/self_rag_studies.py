"""Self-RAG's training studies (Fig. 3a and 4): train variants of a generator and compare them.

    python papers/measurements/self_rag_studies.py --records records.jsonl --pairs pairs.jsonl
        --index index --answerable answerable.jsonl --output studies
        [--recipe papers/recipes/self_rag_small.toml] [--sizes 400 800]

full           the records as `crag reflect-data generator` made them
no_retriever   their instructions with the plain output: it never sees a passage (Fig. 3a)
no_critic      the same, each output after the first passage of the index; no tokens (Fig. 3a)
size_N         N of the records; a larger size has those of a smaller one (Fig. 4)

Each variant is trained with the same recipe. Without a retriever the model is asked without
passages, without a critic with the one that BM25 puts first, otherwise in Self-RAG's short form
with all of them. A variant that has a card in `output` is not trained again, and one that was
interrupted goes on.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import bm25s
from self_rag_small import LONGEST, Question, Reply, draw_questions, measures, reflected

from crag.factory import choose_encoder
from crag.models.model_card import CARD
from crag.papers.experiments.report import table
from crag.papers.training.records import read_records
from crag.papers.training.self_rag.generator_data import (
    Pair,
    ReflectiveRecord,
    Retrieve,
)
from crag.papers.training.self_rag.language_base import (
    LanguageModel,
    load_language_model,
    save_language_model,
)
from crag.papers.training.self_rag.language_card import describe_data, language_card
from crag.papers.training.self_rag.language_recipe import LanguageRecipe, language_recipe
from crag.papers.training.self_rag.language_trainer import load_base, train_language_model
from crag.papers.training.self_rag.reflective_text import reflective_text
from crag.papers.training.trainer import finish
from crag.parts import Continuation, Passage, Prefix, SegmentLimits
from crag.reflection.backends.transformers import TransformersReflection
from crag.reflection.prompt_format import passage_block
from crag.reflection_tokens import NO_RETRIEVAL, without_reflection
from crag.retrieval import DocumentIndex, IndexRetriever
from crag.runtime.environment import Environment


class Variant(NamedTuple):
    """What one model is trained on."""

    name: str
    records: list[ReflectiveRecord]


def main() -> None:
    """Train what is missing, compare, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--index", required=True)
    parser.add_argument("--answerable", type=Path, required=True)
    parser.add_argument("--unanswerable", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    parser.add_argument("--questions", type=int, default=150, help="150 in the paper")
    given = parser.parse_args()
    changes = dict(setting.split("=", 1) for setting in given.set)
    recipe = language_recipe("generator", given.recipe, changes)
    environment = Environment()
    index = IndexRetriever(DocumentIndex(given.index, choose_encoder(environment)))

    def retrieve(query: str) -> list[Passage]:
        found = index.invoke(query, k=1)
        return [Passage(str(one.metadata.get("title", "")), one.page_content) for one in found]

    records = read_records(given.records, ReflectiveRecord)
    pairs = read_records(given.pairs, Pair)
    questions = draw_questions(given.answerable, given.unanswerable, given.questions)
    columns: dict[str, dict[str, str]] = {}
    for variant in variants(records, pairs, retrieve, given.sizes):
        folder = given.output / variant.name
        if not (folder / CARD).is_file():
            train(variant, recipe, folder, given.records)
        replies = answers(variant.name, load_language_model(str(folder)), questions)
        found = measures(questions, replies, [], [])
        columns[variant.name] = {
            "records": f"{len(variant.records):,}",
            **{name: share for name, share in found.items() if not share.endswith(" of 0")},
        }
        print(json.dumps({variant.name: columns[variant.name]}), flush=True)
    rows = [[row, *(column[row] for column in columns.values())] for row in columns["full"]]
    print(table(["", *columns], rows))


def variants(
    records: Sequence[ReflectiveRecord],
    pairs: Sequence[Pair],
    retrieve: Retrieve,
    sizes: Sequence[int],
) -> Iterator[Variant]:
    """Yield what each variant learns from; all but the sizes from the same instructions."""
    yield Variant("full", list(records))
    kept = {record.instruction for record in records}
    plain = list({pair.asked: pair for pair in pairs if pair.asked in kept}.values())
    yield Variant("no_retriever", [_record(pair, f"{NO_RETRIEVAL} ") for pair in plain])
    found = [(pair, retrieve(pair.asked)) for pair in plain]
    yield Variant(
        "no_critic",
        [_record(pair, f"{passage_block(first[0])} ") for pair, first in found if first],
    )
    order = list(records)
    random.Random(0).shuffle(order)  # noqa: S311 - a choice of examples, no secret
    for size in sizes:
        yield Variant(f"size_{size}", order[:size])


def _record(pair: Pair, before: str) -> ReflectiveRecord:
    return ReflectiveRecord(instruction=pair.asked, output=before + pair.output.strip())


def train(variant: Variant, recipe: LanguageRecipe, folder: Path, source: Path) -> None:
    """Train and save one variant; what stands between paragraph tags is not learned."""
    base = load_base(recipe)
    made = [
        reflective_text(base.tokenizer, one.instruction, one.output, recipe.max_length)
        for one in variant.records
    ]
    texts = [text for text in made if text is not None]
    trained = train_language_model(base, recipe, texts, folder, quiet=True)
    data = describe_data(source, len(texts), licence=None)
    card = language_card("generator", recipe, [data]).model_dump_json(indent=2)
    save_language_model(trained.model, trained.tokenizer, folder, card + "\n")
    finish(folder)


def answers(name: str, model: LanguageModel, questions: Sequence[Question]) -> list[Reply]:
    """Answer as the variant was trained to."""
    if name not in {"no_retriever", "no_critic"}:
        return reflected(model, questions)
    backend = TransformersReflection.around(model.model, model.tokenizer)
    limits = SegmentLimits(LONGEST, whole_answer=True)
    asked = [
        Continuation(Prefix(one.text), _first(one) if name == "no_critic" else None)
        for one in questions
    ]
    told = backend.candidates(asked, limits)
    return [Reply(without_reflection(one.text).strip(), 1.0) for one in told]


def _first(question: Question) -> Passage:
    """Return the passage that BM25 puts first."""
    ranked = bm25s.BM25()
    texts = [passage.text for passage in question.passages]
    ranked.index(bm25s.tokenize(texts, show_progress=False), show_progress=False)
    asked: Any = bm25s.tokenize([question.text], show_progress=False)
    found, _ = ranked.retrieve(asked, k=1, show_progress=False)
    return question.passages[int(found[0][0])]


if __name__ == "__main__":
    main()

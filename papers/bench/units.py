"""The plan of a run: one unit for each question, variant, condition and seed."""

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from langchain_core.documents import Document

from crag.errors import SettingsError
from crag.papers.bench.examples import Example
from crag.papers.bench.experiments import Experiment, Variant
from crag.papers.bench.methods import METHODS

ACCURACY = "retrieval_accuracy"
"""The name of the only condition."""


class Unit(NamedTuple):
    """One question to answer under one variant."""

    variant: Variant
    example: Example
    """With the documents that remain under the condition."""
    condition: dict[str, Any]
    seed: int

    def key(self, parts: str) -> str:
        """Return the key that identifies a finished row; `parts` names model, evaluator and web."""
        variant, example = self.variant, self.example
        texts = [[one.metadata.get("title", ""), one.page_content] for one in example.documents]
        asked = [example.id, example.question, example.choices, dict(example.knowledge), texts]
        done = [variant.method, variant.evaluator, sorted(variant.settings.items())]
        told = [asked, done, variant.name, self.condition, self.seed, parts]
        return hashlib.sha256(json.dumps(told, default=str).encode()).hexdigest()[:24]


def plan(experiment: Experiment, examples: Sequence[Example]) -> Iterator[Unit]:
    """Yield all units, question by question within a variant.

    A method that retrieves nothing, or a run without conditions, uses only the first seed.

    Raises:
        SettingsError: conditions are set and no example says which titles are relevant, or fewer
            questions have a relevant document than a condition wants to keep.
    """
    for variant in experiment.variants:
        for condition, seed in _conditions(experiment, variant):
            for example in _left(examples, condition, seed):
                yield Unit(variant, example, condition, seed)


def is_relevant(document: Document, example: Example) -> bool:
    """Return whether a document is from a relevant page, by its title."""
    return str(document.metadata.get("title", "")) in example.gold_titles


def retrieval_accuracy(examples: Sequence[Example]) -> float:
    """Return the share of questions with a relevant document (CRAG, Fig. 3)."""
    return len(_retrieved(examples)) / len(examples) if examples else 0.0


def without_relevant(examples: Sequence[Example], accuracy: float, seed: int) -> list[Example]:
    """Delete all relevant documents of questions drawn at random until `accuracy` is left.

    The other documents are kept. With the same seed, a lower accuracy affects a superset of the
    questions.

    Raises:
        SettingsError: `accuracy` is above what the examples have.
    """
    hits = _retrieved(examples)
    surplus = len(hits) - round(accuracy * len(examples))
    if surplus < 0:
        here = f"{retrieval_accuracy(examples):.1%} of the questions have a relevant document"
        raise SettingsError("retrieval_accuracies", accuracy, f"{here}; use at most that")
    order = random.Random(seed).sample(hits, len(hits))  # noqa: S311 - no secret
    lost = {example.id for example in order[:surplus]}
    return [_stripped(example) if example.id in lost else example for example in examples]


def _conditions(experiment: Experiment, variant: Variant) -> Iterator[tuple[dict[str, Any], int]]:
    first = experiment.seeds[0]
    if not experiment.retrieval_accuracies or "retriever" not in METHODS[variant.method].needs:
        yield {}, first
        return
    yield {}, first
    for seed in experiment.seeds:
        for accuracy in experiment.retrieval_accuracies:
            yield {ACCURACY: accuracy}, seed


def _left(examples: Sequence[Example], condition: dict[str, Any], seed: int) -> Sequence[Example]:
    if ACCURACY not in condition:
        return examples
    return without_relevant(examples, condition[ACCURACY], seed)


def _retrieved(examples: Sequence[Example]) -> list[Example]:
    return [
        example
        for example in examples
        if any(is_relevant(document, example) for document in example.documents)
    ]


def _stripped(example: Example) -> Example:
    left = tuple(one for one in example.documents if not is_relevant(one, example))
    return example._replace(documents=left)

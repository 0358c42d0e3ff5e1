"""Experiments: tables of TOML files with the variants to compare, and the units of work they plan.

::

    [actions]
    name = "Actions removed"
    task = "popqa"
    baseline = "crag"             # differences are relative to it
    paper = "CRAG v3, Table 2"    # source of the paper's numbers
    paper_metric = "match"        # what they measure; default: the first metric
    metrics = ["match"]           # the first one is drawn; default: all of the task
    seeds = [0, 1, 2]             # of what is drawn at random
    retrieval_accuracies = [0.6]  # shares of questions that keep their relevant documents

    [actions.settings]            # of all variants; "none" unsets an optional one
    upper = "none"

    [[actions.sweep]]             # runs each variant with each of these settings
    k = 5

    [[actions.variant]]
    name = "crag"
    method = "crag"
    evaluator = "default"         # a name or folder
    generator = "llama2_ft"       # a word of the name of the chat model that the row needs
    settings = { upper = 100 }     # no score is Correct
    paper = { "SelfRAG-LLaMA2-7b" = 58.3 }
    reproduces = "…"              # which part of the published setting it has
    differs = "…"                 # and which not
"""

import hashlib
import json
import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from crag.errors import DataError, SettingsError
from crag.papers.bench.examples import Example, TaskName
from crag.papers.bench.methods import METHODS
from crag.papers.released.reflection import released_settings
from crag.plain import problem_of


class Variant(BaseModel):
    """One method with its settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    method: str
    evaluator: str = ""
    """Empty: the evaluator of the run."""
    generator: str = ""
    """The row is run only by a chat model whose name holds this; empty: by any."""
    settings: dict[str, Any] = {}
    paper: dict[str, float] = {}
    """The paper's number, by its model."""
    reproduces: str = ""
    """Which part of the published setting this row has."""
    differs: str = ""
    """Which part it does not have, or has only if somebody supplies it."""


class Experiment(BaseModel):
    """The content of one file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    task: TaskName
    about: str = ""
    """A sentence or two for the report."""
    baseline: str
    paper: str = ""
    paper_metric: str = ""
    metrics: list[str] = []
    seeds: list[int] = Field(default=[0], min_length=1)
    retrieval_accuracies: list[Annotated[float, Field(ge=0, le=1)]] = []
    timed: bool = False
    """One question at a time and no cached scores, so seconds are meaningful."""
    settings: dict[str, Any] = {}
    sweep: list[dict[str, Any]] = []
    variant: list[Variant] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_hold(self) -> "Experiment":
        names = [variant.name for variant in self.variants]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"variants of the same name: {', '.join(twice)}")
        if self.baseline not in names:
            message = f"the baseline {self.baseline!r} is not a variant: {', '.join(names)}"
            raise ValueError(message)
        return self

    @property
    def variants(self) -> list[Variant]:
        """All variants, those of a sweep one by one, each with all of its settings."""
        return [
            variant.model_copy(
                update={
                    "name": ", ".join(
                        [variant.name, *(f"{name}={value}" for name, value in swept.items())]
                    ),
                    "settings": self.settings | variant.settings | swept,
                }
            )
            for variant in self.variant
            for swept in self.sweep or [{}]
        ]


def read_tables(path: Path) -> dict[str, Any]:
    """Return what a file of experiments holds, by name.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise DataError(path, f"is not TOML: {error}") from None


def read_experiment(place: str, changes: Mapping[str, object] | None = None) -> Experiment:
    """Read ``FILE:TABLE``, or the first of a file; `changes` override every variant's settings.

    Raises:
        DataError: the file cannot be read, has no such table, or a field is unknown, missing or out
            of range.
    """
    file, _, table = place.partition(":")
    path = Path(file)
    known = read_tables(path)
    table = table or next(iter(known), "")
    if table not in known:
        raise DataError(path, f"table {table!r} is none of {', '.join(known)}")
    try:
        found = Experiment.model_validate(known[table])
    except ValidationError as error:
        raise DataError(path, f"{table}: {problem_of(error, 'the experiment')}") from None
    rows = [
        one.model_copy(update={"settings": {**one.settings, **(changes or {})}})
        for one in found.variant
    ]
    found = found.model_copy(update={"variant": rows})
    for variant in found.variants:
        if variant.method not in METHODS:
            message = f"variant {variant.name!r}: method {variant.method!r} is none of "
            raise DataError(path, message + ", ".join(METHODS))
        try:
            released_settings(variant.settings)
        except SettingsError as error:
            raise DataError(path, f"variant {variant.name!r}: {error}") from None
    return found


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
        first = experiment.seeds[0]
        yield from (Unit(variant, example, {}, first) for example in examples)
        if "retriever" not in METHODS[variant.method].needs:
            continue
        for seed in experiment.seeds:
            for accuracy in experiment.retrieval_accuracies:
                for example in without_relevant(examples, accuracy, seed):
                    yield Unit(variant, example, {ACCURACY: accuracy}, seed)


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


def _retrieved(examples: Sequence[Example]) -> list[Example]:
    return [one for one in examples if any(is_relevant(found, one) for found in one.documents)]


def _stripped(example: Example) -> Example:
    left = tuple(one for one in example.documents if not is_relevant(one, example))
    return example._replace(documents=left)

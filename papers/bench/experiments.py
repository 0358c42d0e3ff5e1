"""Experiments: small TOML files with the variants to compare and the papers' numbers.

::

    name = "Actions removed"
    task = "popqa"
    baseline = "crag"             # differences are relative to it
    paper = "CRAG v3, Table 2"    # source of the paper's numbers
    paper_metric = "match"        # what they measure; default: the first metric
    metrics = ["match"]           # the first one is drawn; default: all of the task
    seeds = [0, 1, 2]             # of what is drawn at random
    retrieval_accuracies = [0.6]  # shares of questions that keep their relevant documents

    [settings]                    # of all variants; "none" unsets an optional one
    upper = "none"

    [[sweep]]                     # runs each variant with each of these settings
    k = 5

    [[variant]]
    name = "crag"
    method = "crag"
    evaluator = "default"         # a name or folder
    generator = "llama2_ft"       # a word of the name of the chat model that the row needs
    settings = { without = "correct" }
    paper = { "SelfRAG-LLaMA2-7b" = 58.3 }
    reproduces = "…"              # which part of the published setting it has
    differs = "…"                 # and which not
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from crag.errors import DataError, SettingsError
from crag.papers.bench.examples import TaskName
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
    retrieval_accuracies: list[float] = []
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
        for name in ("seeds", "retrieval_accuracies"):
            numbers: list[float] = getattr(self, name)
            if repeated := [number for number in numbers if numbers.count(number) > 1]:
                raise ValueError(f"{name} holds {repeated[0]:g} twice")
        wrong = [share for share in self.retrieval_accuracies if not 0 <= share <= 1]
        if wrong:
            raise ValueError(f"retrieval_accuracies are shares from 0 to 1, not {wrong[0]:g}")
        return self

    @property
    def variants(self) -> list[Variant]:
        """All variants, those of a sweep one by one, each with all of its settings."""
        return [
            variant.model_copy(
                update={
                    "name": ", ".join([variant.name, *_named(swept)]),
                    "settings": self.settings | variant.settings | swept,
                }
            )
            for variant in self.variant
            for swept in self.sweep or [{}]
        ]


ThresholdSource = Literal["task", "evaluator"]
_OWN_THRESHOLDS: Mapping[str, Any] = {"upper": "none", "lower": "none"}
_OWN_PROMPTS = {"pubhealth", "arc", "biography", "asqa"}
"""Tasks whose answers are only read rightly if the task's own prompt was asked."""


def read_experiment(
    path: Path,
    changes: Mapping[str, object] | None = None,
    thresholds: ThresholdSource = "task",
) -> Experiment:
    """Read an experiment; `changes` override the settings of every variant.

    The thresholds of a task belong to the paper's T5. With `thresholds` "evaluator" those of the
    evaluator take their place, wherever the experiment itself sets none; nothing else changes.

    Raises:
        DataError: the file cannot be read, or a field is unknown, missing or out of range.
        SettingsError: a setting is unknown or out of range, or gives the questions of one task the
            prompts of another.
    """
    try:
        given: Any = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(path, f"is not TOML: {error}") from None
    try:
        experiment = Experiment.model_validate(given)
    except ValidationError as error:
        raise DataError(path, problem_of(error, "the experiment")) from None
    own = _OWN_THRESHOLDS if thresholds == "evaluator" else {}
    changed = experiment.model_copy(
        update={
            "settings": {**own, **experiment.settings},
            "variant": [
                variant.model_copy(update={"settings": variant.settings | dict(changes or {})})
                for variant in experiment.variant
            ],
        }
    )
    for variant in changed.variants:
        _check(path, variant)
        _check_task(changed.task, variant)
    return changed


def _check_task(task: TaskName, variant: Variant) -> None:
    given = str(variant.settings.get("task", "default"))
    if task in _OWN_PROMPTS and given != task:
        message = (
            f"the questions are of the task {task}, and its prompts tell how to answer them. Set "
            f'task = "{task}"; for the thresholds of another evaluator give --thresholds evaluator'
        )
        raise SettingsError("task", given, message)


def _check(path: Path, variant: Variant) -> None:
    from crag.papers.bench.methods import METHODS

    if variant.method not in METHODS:
        message = f"variant {variant.name!r}: method {variant.method!r} is none of "
        raise DataError(path, message + ", ".join(METHODS))
    try:
        released_settings(variant.settings)
    except SettingsError as error:
        raise DataError(path, f"variant {variant.name!r}: {error}") from None


def _named(settings: Mapping[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in settings.items()]

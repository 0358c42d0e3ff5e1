"""The interface of metrics, and its two kinds: of a row, and of a set of rows."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crag.papers.bench.examples import TASKS, Example, TaskName
from crag.papers.tasks import answer_of, profile_of

Row = Mapping[str, Any]
"""One answered question, as `crag.papers.bench.rows` writes it."""
Pairs = Sequence[tuple[Example, Row]]
Direction = Literal["higher", "lower", "neither"]
"""Whether higher or lower is better; `neither` if it depends on the purpose."""
MetricUnit = Literal["share", "count", "words", "tokens", "seconds", "dollars"]
"""The unit of a value: shares are in [0, 1]; the papers print them as percentages."""
ALL: frozenset[TaskName] = frozenset(TASKS)
LABELLED = frozenset(task for task in TASKS if profile_of(task).closed)
"""Tasks whose answer is one of a few labels."""
LONG = frozenset(task for task in TASKS if answer_of(task) == "long")
"""Tasks whose answer is a long text."""


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """Measures rows. Pure and without network; a model it needs is passed to its constructor."""

    name: str
    """The column's name, unique among metrics."""
    direction: Direction = "higher"
    unit: MetricUnit = "share"
    tasks: frozenset[TaskName] = ALL
    """The tasks it applies to."""
    package: str = ""
    """The optional package it needs, or an empty text."""
    needs: str = ""
    """The option of ``crag bench`` that names its model, or an empty text."""

    @abstractmethod
    def score(self, example: Example, row: Row) -> float | None:
        """Return the value of one row; None if it does not apply, which callers count."""

    @abstractmethod
    def summarise(self, pairs: Pairs) -> float | None:
        """Return the value of all rows; None if it applies to none."""


@dataclass(frozen=True, kw_only=True)
class RowMetric(Metric):
    """A metric that looks at one row at a time; its summary is the mean."""

    compute: Callable[[Example, Row], float | None]
    """Called only with rows of its tasks that did not fail."""
    of_failed: bool = False
    """Whether failed rows have a value too, as for costs."""

    def score(self, example: Example, row: Row) -> float | None:
        """Return the value of one row; None for a failed row or another task."""
        if example.task not in self.tasks or (row["status"] == "failed" and not self.of_failed):
            return None
        return self.compute(example, row)

    def summarise(self, pairs: Pairs) -> float | None:
        """Return the mean over the rows it applies to."""
        scores = [self.score(example, row) for example, row in pairs]
        values = [score for score in scores if score is not None]
        return sum(values) / len(values) if values else None


@dataclass(frozen=True, kw_only=True)
class SetMetric(Metric):
    """A metric of a whole set of rows, such as MAUVE; single rows have no value."""

    compute: Callable[[Pairs], float | None]
    """Called only with the rows of its tasks that did not fail, at least one."""

    def score(self, example: Example, row: Row) -> float | None:  # noqa: ARG002 - as `Metric`
        """Return None: one row has no value."""
        return None

    def summarise(self, pairs: Pairs) -> float | None:
        """Return the value of the rows of its tasks that did not fail."""
        usable = [
            (example, row)
            for example, row in pairs
            if example.task in self.tasks and row["status"] != "failed"
        ]
        return self.compute(usable) if usable else None

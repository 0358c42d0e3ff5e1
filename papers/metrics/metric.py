"""What a metric is: a function of an example and a row, or of a set of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crag.papers.bench.examples import TASKS, Example, TaskName
from crag.papers.tasks import answer_of, profile_of

Row = Mapping[str, Any]
"""One answered question, as `crag.papers.bench.runner` writes it."""
Pairs = Sequence[tuple[Example, Row]]
ALL: frozenset[TaskName] = frozenset(TASKS)
LABELLED = frozenset(task for task in TASKS if profile_of(task).closed)
"""Tasks whose answer is one of a few labels."""
LONG = frozenset(task for task in TASKS if answer_of(task) == "long")
"""Tasks whose answer is a long text."""


def has_answer(row: Row) -> bool:
    """Return whether a row has an answer, sure or likely."""
    return row["outcome"] in {"answered", "likely"}


@dataclass(frozen=True, kw_only=True)
class Metric:
    """Measures rows, without network; a model that it needs is part of its function."""

    name: str
    """The column's name, unique among metrics."""
    compute: Callable[[Example, Row], float | None] = lambda _, __: None
    """The value of a row of its tasks that did not fail; None if it does not apply."""
    of_set: Callable[[Pairs], float | None] | None = None
    """The value of a whole set of such rows, such as MAUVE, if single rows have none."""
    unit: Literal["share", "count", "words", "tokens", "seconds"] = "share"
    """Shares are in [0, 1]; the papers print them as percentages."""
    tasks: frozenset[TaskName] = ALL
    """The tasks it applies to."""
    needs: str = ""
    """The option of ``crag bench`` that names its model, or an empty text."""
    of_failed: bool = False
    """Whether failed rows have a value too, as for costs."""

    def score(self, example: Example, row: Row) -> float | None:
        """Return the value of one row; None if it does not apply."""
        return self.compute(example, row) if self._applies(example, row) else None

    def summarise(self, pairs: Pairs) -> float | None:
        """Return the value of the whole set, if it is one of sets; None if it applies to no row."""
        usable = [pair for pair in pairs if self._applies(*pair)]
        return self.of_set(usable) if self.of_set and usable else None

    def _applies(self, example: Example, row: Row) -> bool:
        return example.task in self.tasks and (row["outcome"] != "failed" or self.of_failed)

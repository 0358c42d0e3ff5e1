"""Run all units of an experiment concurrently, resumably and within a budget."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from crag.asking.budget import BudgetSpentError
from crag.papers.experiments.answering import Answerer
from crag.papers.experiments.rows import Row, RowFile
from crag.papers.experiments.units import Unit

DEFAULT_CONCURRENCY = 4
ProgressCallback = Callable[[int, int, str], None]
"""Called with the number of finished units, their total, and the name of the last variant."""


@dataclass
class RunResult:
    """How a run ended."""

    units: int
    """Number of units in the whole plan."""
    resumed: int = 0
    """Finished by an earlier run."""
    answered: int = 0
    """Rows written by this one, failed ones too."""
    failed: int = 0
    not_run: dict[str, str] = field(default_factory=dict)
    """Why a variant was not run at all, by its name."""
    stopped: str = ""
    """The limit of the budget that ended it early; empty if it finished."""


class Remaining(NamedTuple):
    """The remaining units of a plan."""

    units: list[Unit]
    ended: RunResult


class Answers(Protocol):
    """Answers units, in this process or in others."""

    def __call__(self, units: Sequence[Unit], on_row: Callable[[Row], None]) -> Awaitable[str]:
        """Pass on each row when it is ready; return the limit that stopped the run, if any."""
        ...


def remaining_units(
    units: Iterable[Unit], rows: RowFile, answerer: Answerer, *, again: bool = False
) -> Remaining:
    """Skip finished and impossible units; `again` retries failed rows once."""
    todo, ended = [], RunResult(units=0)
    for unit in units:
        ended.units += 1
        missing = answerer.missing(unit)
        done = rows.rows.get(unit.key(answerer.resources.named(unit)))
        if missing:
            ended.not_run[unit.variant.name] = missing
        elif done is not None and not (again and done["status"] == "failed"):
            ended.resumed += 1
        else:
            todo.append(unit)
    return Remaining(todo, ended)


async def run(
    todo: Remaining, rows: RowFile, answers: Answers, progress: ProgressCallback | None = None
) -> RunResult:
    """Answer the remaining units; each row is written to disk before it counts as done."""
    ended = todo.ended
    not_run = ended.units - ended.resumed - len(todo.units)

    def on_row(row: Row) -> None:
        rows.append(row)
        ended.answered += 1
        ended.failed += row["status"] == "failed"
        if progress is not None:
            progress(ended.resumed + ended.answered, ended.units - not_run, row["variant"])

    ended.stopped = await answers(todo.units, on_row)
    return ended


def in_process(answerer: Answerer, concurrency: int = DEFAULT_CONCURRENCY) -> Answers:
    """Answer in this process, at most `concurrency` units at the same time."""

    async def answers(units: Sequence[Unit], on_row: Callable[[Row], None]) -> str:
        left_over = iter(units)
        stopped: list[str] = []

        async def work() -> None:
            for unit in left_over:
                reached = answerer.resources.meter.reached()
                if stopped or reached:
                    stopped.append(reached)
                    return
                try:
                    on_row(await answerer.answer(unit))
                except BudgetSpentError as error:
                    stopped.append(str(error))

        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, concurrency)):
                group.create_task(work())
        return next((reason for reason in stopped if reason), "")

    return answers

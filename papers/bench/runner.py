"""Run all units of an experiment concurrently, resumably and within a budget."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from crag.papers.bench.answering import Answerer
from crag.papers.bench.budget import Budget, Meter
from crag.papers.bench.resources import RunConfig, load_resources
from crag.papers.bench.rows import Row, RowFile
from crag.papers.bench.running import concurrently, on_ray
from crag.papers.bench.units import Unit
from crag.runtime.environment import Environment

DEFAULT_CONCURRENCY = 4
ProgressCallback = Callable[[int, int, str], None]
"""Called with the number of finished units, their total, and the name of the last variant."""


Answers = Callable[[Sequence[Unit], Callable[[Row], None]], str]
"""Answers units, passes on each row when it is ready, and returns the limit that stopped it."""


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
    """Failed rows of the plan, those of an earlier run too."""
    left: int = 0
    """Rows that are missing, without those of variants that were not run."""
    not_run: dict[str, str] = field(default_factory=dict)
    """Why a variant was not run at all, by its name."""
    stopped: str = ""
    """The limit of the budget that ended it early; empty if it finished."""


class Remaining(NamedTuple):
    """The remaining units of a plan."""

    units: list[Unit]
    ended: RunResult


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
            ended.failed += done["status"] == "failed"
        else:
            todo.append(unit)
    ended.left = len(todo)
    return Remaining(todo, ended)


def run(
    todo: Remaining, rows: RowFile, answers: Answers, progress: ProgressCallback | None = None
) -> RunResult:
    """Answer the remaining units; each row is written to disk before it counts as done."""
    ended = todo.ended

    def on_row(row: Row) -> None:
        rows.append(row)
        ended.answered += 1
        ended.left -= 1
        ended.failed += row["status"] == "failed"
        if progress is not None:
            done = ended.resumed + ended.answered
            progress(done, done + ended.left, row["variant"])

    ended.stopped = answers(todo.units, on_row)
    return ended


def in_process(answerer: Answerer, concurrency: int = DEFAULT_CONCURRENCY) -> Answers:
    """Answer in this process, at most `concurrency` units at the same time."""

    def answers(units: Sequence[Unit], on_row: Callable[[Row], None]) -> str:
        meter = answerer.resources.meter
        answering = concurrently(
            units, answerer.answer, on_row, concurrency=concurrency, meter=meter
        )
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(answering)  # In this thread, where Ctrl-C cancels it.
        with ThreadPoolExecutor(1) as pool:  # As in a notebook.
            return pool.submit(asyncio.run, answering).result()

    return answers


def in_workers(config: RunConfig, workers: int) -> Answers:
    """Answer in Ray workers: those of the cluster that RAY_ADDRESS names, or of this machine.

    The budget is checked for each row, so calls may exceed it.
    """
    meter = Meter(config.budget)
    answering = partial(_answering, replace(config, budget=Budget(prices=config.budget.prices)))

    def answers(units: Sequence[Unit], on_row: Callable[[Row], None]) -> str:
        def take(row: Row) -> None:
            spent = {name: n - row["cached"].get(name, 0) for name, n in row["usage"].items()}
            meter.calls += spent.get("llm_calls", 0)
            meter.spend(spent)
            on_row(row)

        return on_ray(units, answering, take, workers=workers, meter=meter)

    return answers


def _answering(config: RunConfig) -> Callable[[Unit], list[Row]]:
    """Return what answers units in a worker, with the same models."""
    answerer, loop = Answerer(load_resources(Environment(), config)), asyncio.Runner()
    return lambda unit: [loop.run(answerer.answer(unit))]

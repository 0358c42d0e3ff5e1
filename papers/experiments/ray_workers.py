"""Answer units in Ray workers: on the cores of this machine, or on the machines of a cluster.

Rows come back in any order. `RAY_ADDRESS` names a cluster: see `crag.runtime.ray_cluster`.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

from crag.asking.budget import Budget, Meter
from crag.papers.experiments.answering import Answerer
from crag.papers.experiments.resources import RunConfig, load_resources
from crag.papers.experiments.rows import Row
from crag.papers.experiments.units import Unit
from crag.runtime.environment import Environment
from crag.runtime.ray_cluster import cluster, load_ray, on_workers


class WorkerReply(NamedTuple):
    """The result of a worker."""

    row: Row
    process: int
    """Its process on its machine."""


class RayWorkers:
    """Answers units with Ray; the budget is checked per row, so calls may exceed it.

    Raises:
        MissingPackageError: ray is not installed.
    """

    def __init__(
        self, config: RunConfig, workers: int, *, on_process: Callable[[int], None] | None = None
    ) -> None:
        self._ray = load_ray()
        self._budget = Meter(config.budget)
        prices = Budget(prices=config.budget.prices)
        self._config = replace(config, budget=prices)
        self._workers, self._on_process = workers, on_process
        self._reached = ""

    async def __call__(self, units: Sequence[Unit], on_row: Callable[[Row], None]) -> str:
        """Pass on each row when it is ready; return the limit that stopped the run, if any."""
        with cluster(self._ray, self._workers):
            return await self._answers(units, on_row)

    async def _answers(self, units: Sequence[Unit], on_row: Callable[[Row], None]) -> str:
        replies = on_workers(
            self._ray, partial(answer_unit, self._config), self._affordable(units),
            self._workers, named=_named,
        )  # fmt: skip
        while (found := await asyncio.to_thread(next, replies, None)) is not None:
            self._take(found[1], on_row)
        return self._reached

    def _affordable(self, units: Sequence[Unit]) -> Iterator[Unit]:
        for unit in units:
            self._reached = self._reached or self._budget.reached()
            if self._reached:
                return
            yield unit

    def _take(self, reply: WorkerReply, on_row: Callable[[Row], None]) -> None:
        row = reply.row
        spent = {name: count - row["cached"].get(name, 0) for name, count in row["usage"].items()}
        self._budget.calls += spent.get("llm_calls", 0)
        self._budget.spend(spent)
        on_row(row)
        if self._on_process is not None:
            self._on_process(reply.process)


def _named(unit: Unit) -> str:
    return f"question {unit.example.id} of {unit.variant.name!r}"


def answer_unit(config: RunConfig, unit: Unit) -> WorkerReply:
    """Answer one unit in a worker."""
    answerer, loop = _kept(config)
    return WorkerReply(loop.run(answerer.answer(unit)), os.getpid())


@cache
def _kept(config: RunConfig) -> tuple[Answerer, "asyncio.Runner"]:
    """Keep models, and the event loop that their clients belong to, between units."""
    return Answerer(load_resources(Environment(), config)), asyncio.Runner()

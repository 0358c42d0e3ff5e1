"""Answer units in Ray workers: on the cores of this machine, or on the machines of a cluster.

A worker is a process that keeps its models between units. If a worker dies, Ray restarts its unit
on another one, so none is lost. Rows come back in any order. `RAY_ADDRESS` names a cluster; there,
each machine needs this package, its models, and keys in its own environment.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from crag.bench.answering import Answerer
from crag.bench.budget import Budget, Meter
from crag.bench.resources import RunConfig, load_resources
from crag.bench.rows import Row
from crag.bench.units import Unit
from crag.errors import CragError
from crag.extras import require
from crag.runtime.environment import Environment

RETRIES = 5
"""How often one unit may lose its worker."""
_AHEAD = 2
"""Units submitted per worker, so that no worker waits for the next one."""


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

    async def __call__(self, units: Sequence[Unit], on_row: Callable[[Row], None]) -> str:
        """Pass on each row when it is ready; return the limit that stopped the run, if any."""
        with cluster(self._ray, self._workers):
            return await self._answers(iter(units), on_row)

    async def _answers(self, units: Iterator[Unit], on_row: Callable[[Row], None]) -> str:
        answer = self._ray.remote(max_retries=RETRIES)(answer_unit)
        pending: dict[Any, Unit] = {}
        reached = ""
        while True:
            reached = reached or self._budget.reached()
            while not reached and len(pending) < _AHEAD * self._workers:
                unit = next(units, None)
                if unit is None:
                    break
                pending[answer.remote(self._config, unit)] = unit
            if not pending:
                return reached
            done, _ = await asyncio.to_thread(self._ray.wait, list(pending), num_returns=1)
            self._take(done[0], pending.pop(done[0]), on_row)

    def _take(self, reference: Any, unit: Unit, on_row: Callable[[Row], None]) -> None:
        try:
            reply: WorkerReply = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            message = (
                f"question {unit.example.id} of {unit.variant.name!r} ended {RETRIES + 1} Ray "
                f"workers or could not be sent to one ({error}). Finished rows are kept: run "
                "again, or without --ray to see more"
            )
            raise CragError(message) from error
        row = reply.row
        spent = {name: count - row["cached"].get(name, 0) for name, count in row["usage"].items()}
        self._budget.calls += spent.get("llm_calls", 0)
        self._budget.spend(spent)
        on_row(row)
        if self._on_process is not None:
            self._on_process(reply.process)


def answer_unit(config: RunConfig, unit: Unit) -> WorkerReply:
    """Answer one unit in a worker."""
    answerer, loop = _kept(config)
    return WorkerReply(loop.run(answerer.answer(unit)), os.getpid())


@cache
def _kept(config: RunConfig) -> tuple[Answerer, "asyncio.Runner"]:
    """Keep models, and the event loop that their clients belong to, between units."""
    return Answerer(load_resources(Environment(), config)), asyncio.Runner()


def load_ray() -> Any:
    """Import Ray, which then reports no usage and leaves the accelerators of a machine visible.

    Raises:
        MissingPackageError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # No usage reports.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    require("ray", "--ray", "ray")
    import ray

    return ray


@contextmanager
def cluster(ray: Any, workers: int) -> Iterator[None]:
    """Use the cluster that RAY_ADDRESS names, or start one on this machine for the block."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if not os.environ.get("RAY_ADDRESS"):
        options |= {"num_cpus": workers, "include_dashboard": False}
        options |= {"_node_ip_address": "127.0.0.1"}
    ray.init(**options)
    try:
        yield
    finally:
        ray.shutdown()

"""What each process works on: it claims runs, runs their graphs and stores their streams."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.errors import EmptyInputError, GraphRecursionError, InvalidUpdateError
from psycopg_pool import PoolTimeout

from crag.server.database import Database, heard_within
from crag.server.encoding import encoded
from crag.server.runs import CANCELLED, QUEUE, Claim, Failure, Runs
from crag.server.settings import ServerSettings
from crag.server.streaming import Graph, command, known_settings, parts, with_saver
from crag.server.threads import Status
from crag.telemetry import Instruments

_TOLD = (
    ValueError, TypeError, KeyError, AttributeError, RuntimeError, TimeoutError,
    GraphRecursionError, InvalidUpdateError, EmptyInputError,
)  # fmt: skip
"""Errors whose message the client is told; those of LangGraph's own server."""
_DATABASE = (psycopg.Error, PoolTimeout)
_ROUND, _TIDY, _SWEEP, _END_SECONDS, _AGAIN = 1.0, 5.0, 30.0, 5.0, 0.1
_WAITING_PARTS = 1000

_logger = logging.getLogger(__name__)


class RunTimeoutError(RuntimeError):
    """A run took longer than it may."""


class Stream:
    """Stores the parts of a run as they come, many at once when they come faster than that."""

    def __init__(self, runs: Runs, claim: Claim, place: int) -> None:
        self._runs, self._claim, self._place = runs, claim, place
        self._waiting: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue(_WAITING_PARTS)
        self._failure: Exception | None = None

    @classmethod
    @asynccontextmanager
    async def opened(cls, runs: Runs, claim: Claim) -> AsyncIterator["Stream"]:
        """Continue the stream of a run; on leaving, all parts are stored."""
        stream = cls(runs, claim, await runs.last_place(claim.run_id))
        storing = asyncio.create_task(stream._store())
        try:
            yield stream
        finally:
            await stream._waiting.put(None)
            await storing
        stream._check()

    async def put(self, event: str, data: object) -> None:
        """Add a part."""
        self._check()
        await self._waiting.put((event, encoded(data)))

    def _check(self) -> None:
        if self._failure:
            raise self._failure

    async def _store(self) -> None:
        part = await self._waiting.get()
        while part is not None:
            batch = [part]
            while not self._waiting.empty() and (part := self._waiting.get_nowait()):
                batch.append(part)
            try:
                if not self._failure:
                    await self._runs.append(self._claim, self._place + 1, batch)
            except _DATABASE as error:
                self._failure = error
            self._place += len(batch)
            if part is not None:
                part = await self._waiting.get()


class Worker:
    """One process's share of the work."""

    def __init__(
        self,
        database: Database,
        runs: Runs,
        graphs: Mapping[str, Graph],
        settings: ServerSettings,
        instruments: Instruments | None = None,
    ) -> None:
        self.identity = uuid4()
        self._instruments = instruments
        self._database, self._runs, self._graphs = database, runs, graphs
        self._settings = settings
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self._ends: dict[UUID, str] = {}
        """Why a task is cancelled: interrupt, rollback or lost."""

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work while the block runs; then give the unfinished runs to other processes."""
        loops = [asyncio.create_task(loop()) for loop in (self._claim, self._renew, self._tidy)]
        try:
            yield
        finally:
            pending = {*loops, *self._tasks.values()}
            for task in self._tasks.values():
                task.cancel()
            until = time.monotonic() + _END_SECONDS
            while pending and time.monotonic() < until:
                # Again: Python 3.11's wait_for, with which psycopg's pool waits, can swallow one.
                for loop in loops:
                    loop.cancel()
                _, pending = await asyncio.wait(pending, timeout=_AGAIN)
            with suppress(*_DATABASE):
                await self._runs.release(self.identity)

    async def _claim(self) -> None:
        """Begin runs while there are any and this process has a place for them."""
        with self._database.bells.heard(QUEUE) as bell:
            while True:
                try:
                    while len(self._tasks) < self._settings.jobs and (
                        claim := await self._runs.claim(self.identity)
                    ):
                        if self._instruments and claim.attempt == 1:
                            self._instruments.queue_duration.record(claim.waited)
                        task = asyncio.create_task(self._work(claim))
                        self._tasks[claim.run_id] = task
                        task.add_done_callback(partial(self._done, claim.run_id))
                except _DATABASE as error:
                    _logger.warning("Cannot claim runs: %s", type(error).__name__)
                    await asyncio.sleep(_ROUND)
                await heard_within(bell, _ROUND)

    def _done(self, run_id: UUID, task: asyncio.Task[None]) -> None:
        if self._tasks.get(run_id) is task:  # And not a later attempt.
            del self._tasks[run_id]
            self._ends.pop(run_id, None)
        self._database.bells.ring(QUEUE)

    def _end(self, run_id: UUID, why: str) -> None:
        if (task := self._tasks.get(run_id)) and run_id not in self._ends:
            self._ends[run_id] = why
            task.cancel()

    async def _renew(self) -> None:
        """Renew the leases; end what is cancelled, and what other processes may have taken."""
        renewed, lease = time.monotonic(), self._settings.lease_seconds
        with self._database.bells.heard(CANCELLED) as bell:
            while True:
                mine = set(self._tasks)
                try:
                    async with asyncio.timeout(lease / 2):
                        leased = await self._runs.renew(self.identity, mine)
                    renewed = time.monotonic()
                    for run_id in mine - leased.keys():
                        self._end(run_id, "lost")
                    for run_id, action in leased.items():
                        if action:
                            self._end(run_id, action)
                except (TimeoutError, *_DATABASE) as error:
                    _logger.warning("Cannot renew leases: %s", type(error).__name__)
                    if time.monotonic() - renewed > lease * 0.8:
                        for run_id in mine:
                            self._end(run_id, "lost")
                await heard_within(bell, min(_ROUND, lease / 4))

    async def _tidy(self) -> None:
        sweeping = 0.0
        while True:
            try:
                await self._runs.tidy()
                if self._instruments:
                    self._instruments.running.set(len(self._tasks))
                    self._instruments.queue_length.set(await self._runs.waiting())
                if time.monotonic() > sweeping:
                    sweeping = time.monotonic() + _SWEEP
                    await self._runs.sweep()
            except _DATABASE as error:
                _logger.warning("Cannot tidy up: %s", type(error).__name__)
            await asyncio.sleep(min(_TIDY, self._settings.lease_seconds / 4))

    async def _work(self, claim: Claim) -> None:
        """Run a graph to its end, and store how it ended."""
        failure: Failure | None = None
        thread_status: Status = "idle"
        try:
            thread_status, end = await self._run(claim), "success"
        except asyncio.CancelledError:
            if claim.run_id not in self._ends:
                raise  # The process ends, and gives the run back.
            end = self._ends[claim.run_id]
        except _DATABASE as error:
            # The lease ends, and whoever has the database again goes on.
            _logger.warning("Run %s lost the database: %s", claim.run_id, type(error).__name__)
            return
        except Exception as error:  # noqa: BLE001 - a run may raise anything, and ends with it
            failure, end, thread_status = _failure(claim, error), "error", "error"
        with suppress(asyncio.CancelledError):
            await asyncio.shield(self._store_end(claim, end, thread_status, failure))

    async def _store_end(
        self, claim: Claim, end: str, thread_status: Status, failure: Failure | None
    ) -> None:
        try:
            match end:
                case "lost":
                    return
                case "rollback":
                    await self._runs.roll_back(claim, thread_status)
                case "interrupt":
                    status = await self._status_of(claim)
                    await self._runs.finish(claim, "interrupted", status)
                case _:
                    await self._runs.finish(claim, end, thread_status, failure)
        except _DATABASE as error:
            _logger.warning("Run %s lost the database: %s", claim.run_id, type(error).__name__)

    async def _run(self, claim: Claim) -> Status:
        request, graph = claim.request, self._graph(claim)
        config, given = await self._begin(claim, graph)
        async with Stream.opened(self._runs, claim) as stream, self._limit():
            told = {"run_id": str(claim.run_id), "attempt": claim.attempt}
            await stream.put("metadata", told)
            running = parts(
                graph, given, config,
                context=known_settings(graph, request.get("context")),
                modes=request["stream_mode"],
                subgraphs=request["stream_subgraphs"],
                interrupt_before=request.get("interrupt_before"),
                interrupt_after=request.get("interrupt_after"),
                durability=request.get("durability") or "async",
            )  # fmt: skip
            async for event, data in running:
                await stream.put(event, data)
        return await self._status_of(claim)

    def _graph(self, claim: Claim) -> Graph:
        return with_saver(self._graphs[claim.graph_id], self._database.saver())

    async def _begin(self, claim: Claim, graph: Graph) -> tuple[RunnableConfig, object]:
        """Return where the run starts and with what: a second attempt where the first one ended."""
        request = claim.request
        told: dict[str, Any] = request.get("config") or {}
        config: RunnableConfig = {
            "configurable": {"thread_id": str(claim.thread_id)},
            "metadata": (told.get("metadata") or {})
            | {
                "run_id": str(claim.run_id),
                "graph_id": claim.graph_id,
                "assistant_id": claim.assistant_id,
            },
            "tags": told.get("tags") or [],
        }
        if "recursion_limit" in told:
            config["recursion_limit"] = told["recursion_limit"]
        if claim.attempt > 1:
            found = await graph.aget_state(config)
            if (found.metadata or {}).get("run_id") == str(claim.run_id):
                return config, None
        config["configurable"] |= request.get("checkpoint") or {}
        if request.get("command"):
            return config, command(request["command"])
        return config, request.get("input")

    async def _status_of(self, claim: Claim) -> Status:
        found = await self._graph(claim).aget_state(
            {"configurable": {"thread_id": str(claim.thread_id)}}
        )
        return "interrupted" if found.next else "idle"

    @asynccontextmanager
    async def _limit(self) -> AsyncIterator[None]:
        """End a run that takes too long; a time-out of its own is its own affair."""
        seconds = self._settings.run_seconds
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"the run took longer than {seconds:g} seconds, the limit of this server"
            raise RunTimeoutError(message) from None


def _failure(claim: Claim, error: Exception) -> Failure:
    kind = type(error).__name__
    if isinstance(error, _TOLD):
        return Failure(error=kind, message=str(error))
    _logger.error("Run %s failed", claim.run_id, exc_info=error)
    return Failure(error=kind, message="An internal error occurred")

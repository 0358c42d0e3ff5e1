"""What each process works on: it claims runs, runs their graphs and stores their streams."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import Any, Literal
from uuid import uuid4

import psycopg
from langgraph.errors import EmptyInputError, GraphRecursionError, InvalidUpdateError
from langgraph_sdk.schema import ThreadStatus

from crag.errors import GoneError
from crag.server.database import CANCELLED, LOST, QUEUE, REFUSED, Bell, Graph, Graphs
from crag.server.replies import encoded
from crag.server.runs import Claim, Runs
from crag.server.streaming import command, parts, place, status_of
from crag.telemetry import Instruments

_TOLD = (
    ValueError, TypeError, KeyError, AttributeError, RuntimeError, TimeoutError,
    GraphRecursionError, InvalidUpdateError, EmptyInputError, asyncio.CancelledError, *REFUSED,
)  # fmt: skip
"""Errors whose message the client is told; those of LangGraph's own server."""
_ROUND, _TIDY, _SWEEP, _END_SECONDS = 1.0, 5.0, 30.0, 5.0
_AGAIN, _CANCELLATIONS = 0.5, 10
"""After how many seconds what goes on is cancelled again, and how often in all."""
_WAITING_PARTS = 1000
_SLOW = "the run took longer than {:g} seconds, the limit of this server"
Ending = Literal["cancelled", "late", "lost", "released"]

_logger = logging.getLogger(__name__)


class Attempt:
    """One attempt at a run: its graph, its stream and its end."""

    def __init__(self, runs: Runs, claim: Claim, graphs: Graphs) -> None:
        self._runs, self.claim, self._graphs = runs, claim, graphs
        self._seconds = runs.settings.run_seconds
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._parts: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue(_WAITING_PARTS)
        self._unstored: Exception | None = None
        """Why parts could not be stored."""

    @cached_property
    def _graph(self) -> Graph:
        return self._runs.database.saving(self._graphs[self.claim.graph_id], self.claim.fence)

    def end(self, why: Ending) -> None:
        """Let it end; the first reason counts."""
        if not self._ending.done():
            self._ending.set_result(why)

    async def work(self) -> None:
        """Run the graph until it is over or is to end, and store its stream and how it ended."""
        storing, running = asyncio.create_task(self._store()), asyncio.create_task(self._run())
        running.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            either: set[asyncio.Future[Any]] = {running, self._ending}
            await asyncio.wait(either, timeout=self._seconds, return_when="FIRST_COMPLETED")
            if not running.done():
                self.end("late")
                await _cancelled(running)
            await self._parts.put(None)
            await storing
            await self._store_end(running)
        except GoneError:
            _logger.info("Run %s is gone, or another process has it", self.claim.run_id)
        except psycopg.Error as error:
            # The lease ends, and whoever has the database again goes on.
            _logger.warning("Run %s lost the database: %s", self.claim.run_id, type(error).__name__)

    async def _store(self) -> None:
        """Store the parts as they come, many at once when they come faster than that."""
        batch: list[tuple[str, str] | None] = []
        while None not in batch:
            batch = [await self._parts.get()]
            while not self._parts.empty():
                batch.append(self._parts.get_nowait())
            new = [part for part in batch if part]
            try:
                if new and not self._unstored:
                    await self._runs.append(self.claim, new)
            except (psycopg.Error, GoneError) as error:
                self._unstored = error

    async def _store_end(self, running: "asyncio.Task[ThreadStatus]") -> None:
        finish, claim = self._runs.finish, self.claim
        over = running.done() and not running.cancelled()
        error = (running.exception() if over else None) or self._unstored
        why = self._ending.result() if self._ending.done() else None
        if isinstance(error, (GoneError, *LOST)) and not isinstance(error, REFUSED):
            raise error
        if over and not error:
            await finish(claim, "success", running.result())
        elif why == "cancelled":
            await finish(claim, "interrupted", await status_of(self._graph, claim.thread_id))
        elif why == "late":
            late = {"error": "RunTimeoutError", "message": _SLOW.format(self._seconds)}
            await finish(claim, "error", failure=late)
        elif why is None:
            error = error or asyncio.CancelledError("a part of the run cancelled it")
            if not (told := isinstance(error, _TOLD)):
                _logger.error("Run %s failed", claim.run_id, exc_info=error)
            message = str(error) if told else "An internal error occurred"
            failure = {"error": type(error).__name__, "message": message}
            await finish(claim, "error", failure=failure)

    async def _run(self) -> ThreadStatus:
        """Run the graph as it was asked for; a second attempt goes on where the first one ended."""
        claim, request = self.claim, self.claim.request
        told = request.get("config") or {}
        run = {"run_id": str(claim.run_id), "graph_id": claim.graph_id,
               "assistant_id": claim.assistant_id}  # fmt: skip
        config: Any = told | place(claim.thread_id) | {"metadata": told.get("metadata", {}) | run}
        begun = (await self._graph.aget_state(config)).metadata if claim.attempt > 1 else None
        if begun and begun.get("run_id") == run["run_id"]:
            given = None
        else:
            at = request.get("checkpoint") or {}
            config |= place(claim.thread_id, at if at.get("checkpoint_id") else None)
            given = command(request["command"]) if request.get("command") else request.get("input")
        await self._put("metadata", {"run_id": run["run_id"], "attempt": claim.attempt})
        async for event, data in parts(self._graph, given, config, request):
            await self._put(event, data)
        return await status_of(self._graph, claim.thread_id)

    async def _put(self, event: str, data: object) -> None:
        if self._unstored:
            raise self._unstored
        await self._parts.put((event, encoded(data)))


async def _cancelled(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel until they are over: Python 3.11's wait_for, in psycopg, can swallow a cancellation.

    What goes on for all that is left alone; fences keep it from writing.
    """
    for _ in range(_CANCELLATIONS):
        if not (pending := {task for task in tasks if not task.done()}):
            return
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_AGAIN)
    _logger.warning("What was cancelled %d times does not end", _CANCELLATIONS)


class Worker:
    """One process's share of the work."""

    def __init__(self, runs: Runs, graphs: Graphs, instruments: Instruments | None) -> None:
        self._identity = uuid4()
        self._runs, self._graphs, self._instruments = runs, graphs, instruments
        self._bells, self._settings = runs.database.bells, runs.settings
        self._attempts: dict[asyncio.Task[None], Attempt] = {}

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work while the block runs; then give the unfinished runs to other processes."""
        self._renewed, often = time.monotonic(), self._settings.lease_seconds / 4
        steps = (
            self._repeat("claim runs", self._claim, QUEUE, _ROUND),
            self._repeat("renew leases", self._renew, CANCELLED, min(_ROUND, often)),
            self._repeat("tidy up", self._tidy, "", min(_TIDY, often)),  # Nobody rings for it.
            self._repeat("sweep", self._runs.sweep, "", _SWEEP),
        )
        loops = [asyncio.create_task(step) for step in steps]
        try:
            yield
        finally:
            await _cancelled(*loops)
            for attempt in self._attempts.values():
                attempt.end("released")
            if self._attempts:
                await asyncio.wait(self._attempts, timeout=_END_SECONDS)
            with suppress(psycopg.Error):
                await self._runs.release(self._identity)

    async def _repeat(
        self, what: str, step: Callable[[], Awaitable[None]], bell: str, seconds: float
    ) -> None:
        """Take a step whenever a bell rings, and every so many seconds all the same."""
        while True:
            rung = self._bells.hear(bell)
            try:
                await step()
            except (TimeoutError, psycopg.Error) as error:
                _logger.warning("Cannot %s: %s", what, type(error).__name__)
                rung = Bell()  # It may ring at once, and to no avail.
            await rung.heard_within(seconds)

    async def _claim(self) -> None:
        """Begin runs while there are any and this process has a place for them."""
        while len(self._attempts) < self._settings.jobs:
            claim = await self._runs.claim(self._identity)
            if not claim:
                return
            if self._instruments and claim.attempt == 1:
                self._instruments.queue_duration.record(claim.waited)
            attempt = Attempt(self._runs, claim, self._graphs)
            task = asyncio.create_task(attempt.work())
            self._attempts[task] = attempt
            task.add_done_callback(self._attempts.pop)
            task.add_done_callback(lambda _: self._bells.ring(QUEUE))

    async def _renew(self) -> None:
        """Renew the leases; end what is cancelled, and what other processes may have taken."""
        lease = self._settings.lease_seconds
        mine = {attempt.claim: attempt for attempt in self._attempts.values()}
        try:
            async with asyncio.timeout(lease / 2):
                leased = await self._runs.renew(self._identity, mine)
        except (TimeoutError, psycopg.Error):
            if time.monotonic() - self._renewed > lease * 0.8:
                for attempt in mine.values():
                    attempt.end("lost")
            raise
        self._renewed = time.monotonic()
        for claim, attempt in mine.items():
            if claim not in leased:
                attempt.end("lost")
            elif leased[claim]:
                attempt.end("cancelled")

    async def _tidy(self) -> None:
        await self._runs.tidy()
        if self._instruments:
            self._instruments.running.set(len(self._attempts))
            self._instruments.queue_length.set(await self._runs.waiting())

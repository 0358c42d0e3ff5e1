"""What each process works on: it claims runs, runs their graphs and stores their streams."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from typing import Any, Literal
from uuid import uuid4

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.errors import EmptyInputError, GraphRecursionError, InvalidUpdateError

from crag.server.database import CANCELLED, LOST, QUEUE, REFUSED, Database, GoneError, heard_within
from crag.server.encoding import encoded
from crag.server.runs import Claim, Failure, Runs
from crag.server.settings import ServerSettings
from crag.server.streaming import Graph, command, parts, with_saver
from crag.server.threads import Status
from crag.telemetry import Instruments

_TOLD = (
    ValueError, TypeError, KeyError, AttributeError, RuntimeError, TimeoutError,
    GraphRecursionError, InvalidUpdateError, EmptyInputError, *REFUSED,
)  # fmt: skip
"""Errors whose message the client is told; those of LangGraph's own server."""
_ROUND, _TIDY, _SWEEP, _END_SECONDS = 1.0, 5.0, 30.0, 5.0
_AGAIN, _CANCELLATIONS = 0.5, 10
"""After how many seconds what goes on is cancelled again, and how often in all."""
_WAITING_PARTS = 1000
Ending = Literal["cancelled", "late", "lost", "released"]

_logger = logging.getLogger(__name__)


class Stream:
    """Stores the parts of a run as they come, many at once when they come faster than that."""

    def __init__(self, runs: Runs, claim: Claim, place: int) -> None:
        self._runs, self._claim, self._place = runs, claim, place
        self._waiting: asyncio.Queue[tuple[str, str] | None] = asyncio.Queue(_WAITING_PARTS)
        self.failure: Exception | None = None
        """Why parts could not be stored."""

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

    async def put(self, event: str, data: object) -> None:
        """Add a part."""
        if self.failure:
            raise self.failure
        await self._waiting.put((event, encoded(data)))

    async def _store(self) -> None:
        part = await self._waiting.get()
        while part is not None:
            batch = [part]
            while not self._waiting.empty() and (part := self._waiting.get_nowait()):
                batch.append(part)
            try:
                if not self.failure:
                    await self._runs.append(self._claim, self._place + 1, batch)
            except (psycopg.Error, GoneError) as error:
                self.failure = error
            self._place += len(batch)
            if part is not None:
                part = await self._waiting.get()


class Attempt:
    """One attempt at a run: its graph, its stream and its end."""

    def __init__(
        self, runs: Runs, claim: Claim, graphs: Mapping[str, Graph], seconds: float
    ) -> None:
        self._runs, self.claim, self._graphs, self._seconds = runs, claim, graphs, seconds
        self._ending: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()

    @cached_property
    def _graph(self) -> Graph:
        return with_saver(self._graphs[self.claim.graph_id], self._runs.saver(self.claim))

    def end(self, why: Ending) -> None:
        """Let it end; the first reason counts."""
        if not self._ending.done():
            self._ending.set_result(why)

    async def work(self) -> None:
        """Run the graph until it is over or is to end, and store how it ended."""
        try:
            async with Stream.opened(self._runs, self.claim) as stream:
                running = asyncio.create_task(self._run(stream))
                running.add_done_callback(lambda task: task.cancelled() or task.exception())
                either: set[asyncio.Future[Any]] = {running, self._ending}
                await asyncio.wait(either, timeout=self._seconds, return_when="FIRST_COMPLETED")
                if not running.done():
                    self.end("late")
                    await _cancelled(running)
            await self._store_end(running, stream.failure)
        except GoneError:
            _logger.info("Run %s is gone, or another process has it", self.claim.run_id)
        except psycopg.Error as error:
            # The lease ends, and whoever has the database again goes on.
            _logger.warning("Run %s lost the database: %s", self.claim.run_id, type(error).__name__)

    async def _store_end(self, running: "asyncio.Task[Status]", failure: Exception | None) -> None:
        finish, claim = self._runs.finish, self.claim
        over = running.done() and not running.cancelled()
        error = (running.exception() if over else None) or failure
        why = self._ending.result() if self._ending.done() else None
        if isinstance(error, (GoneError, *LOST)) and not isinstance(error, REFUSED):
            raise error
        if over and not error:
            await finish(claim, "success", running.result())
        elif why == "cancelled":
            await finish(claim, "interrupted", await self._status())
        elif why == "late":
            message = (
                f"the run took longer than {self._seconds:g} seconds, the limit of this server"
            )
            await finish(claim, "error", "error", Failure("RunTimeoutError", message))
        elif why is None:
            await finish(claim, "error", "error", self._failure(error))

    def _failure(self, error: BaseException | None) -> Failure:
        if error is None:
            return Failure("CancelledError", "a part of the run cancelled it")
        kind = type(error).__name__
        if isinstance(error, _TOLD):
            return Failure(kind, str(error))
        _logger.error("Run %s failed", self.claim.run_id, exc_info=error)
        return Failure(kind, "An internal error occurred")

    async def _run(self, stream: Stream) -> Status:
        claim, graph = self.claim, self._graph
        config, given = await self._begin()
        await stream.put("metadata", {"run_id": str(claim.run_id), "attempt": claim.attempt})
        async for event, data in parts(graph, given, config, claim.request):
            await stream.put(event, data)
        return await self._status()

    async def _begin(self) -> tuple[RunnableConfig, object]:
        """Return where the run starts and with what: a second attempt where the first one ended."""
        claim, request = self.claim, self.claim.request
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
            found = await self._graph.aget_state(config)
            if (found.metadata or {}).get("run_id") == str(claim.run_id):
                return config, None
        config["configurable"] |= request.get("checkpoint") or {}
        if request.get("command"):
            return config, command(request["command"])
        return config, request.get("input")

    async def _status(self) -> Status:
        thread: RunnableConfig = {"configurable": {"thread_id": str(self.claim.thread_id)}}
        found = await self._graph.aget_state(thread)
        return "interrupted" if found.next else "idle"


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
        self._attempts: dict[asyncio.Task[None], Attempt] = {}

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work while the block runs; then give the unfinished runs to other processes."""
        loops = [asyncio.create_task(loop()) for loop in (self._claim, self._renew, self._tidy)]
        try:
            yield
        finally:
            await _cancelled(*loops)
            for attempt in self._attempts.values():
                attempt.end("released")
            if self._attempts:
                await asyncio.wait(self._attempts, timeout=_END_SECONDS)
            with suppress(psycopg.Error):
                await self._runs.release(self.identity)

    async def _claim(self) -> None:
        """Begin runs while there are any and this process has a place for them."""
        with self._database.bells.heard(QUEUE) as bell:
            while True:
                try:
                    while len(self._attempts) < self._settings.jobs and (
                        claim := await self._runs.claim(self.identity)
                    ):
                        if self._instruments and claim.attempt == 1:
                            self._instruments.queue_duration.record(claim.waited)
                        seconds = self._settings.run_seconds
                        attempt = Attempt(self._runs, claim, self._graphs, seconds)
                        task = asyncio.create_task(attempt.work())
                        self._attempts[task] = attempt
                        task.add_done_callback(self._over)
                except psycopg.Error as error:
                    _logger.warning("Cannot claim runs: %s", type(error).__name__)
                    await asyncio.sleep(_ROUND)
                await heard_within(bell, _ROUND)

    def _over(self, task: "asyncio.Task[None]") -> None:
        del self._attempts[task]
        self._database.bells.ring(QUEUE)

    async def _renew(self) -> None:
        """Renew the leases; end what is cancelled, and what other processes may have taken."""
        renewed, lease = time.monotonic(), self._settings.lease_seconds
        with self._database.bells.heard(CANCELLED) as bell:
            while True:
                mine = {attempt.claim: attempt for attempt in self._attempts.values()}
                try:
                    async with asyncio.timeout(lease / 2):
                        leased = await self._runs.renew(self.identity, mine)
                    renewed = time.monotonic()
                    for claim, attempt in mine.items():
                        if claim not in leased:
                            attempt.end("lost")
                        elif leased[claim]:
                            attempt.end("cancelled")
                except (TimeoutError, psycopg.Error) as error:
                    _logger.warning("Cannot renew leases: %s", type(error).__name__)
                    if time.monotonic() - renewed > lease * 0.8:
                        for attempt in mine.values():
                            attempt.end("lost")
                await heard_within(bell, min(_ROUND, lease / 4))

    async def _tidy(self) -> None:
        sweeping = 0.0
        while True:
            try:
                await self._runs.tidy()
                if self._instruments:
                    self._instruments.running.set(len(self._attempts))
                    self._instruments.queue_length.set(await self._runs.waiting())
                if time.monotonic() > sweeping:
                    sweeping = time.monotonic() + _SWEEP
                    await self._runs.sweep()
            except psycopg.Error as error:
                _logger.warning("Cannot tidy up: %s", type(error).__name__)
            await asyncio.sleep(min(_TIDY, self._settings.lease_seconds / 4))

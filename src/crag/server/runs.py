"""Runs as rows: a queue that any process takes from, leases, and the stream of each run.

A run is pending until a process claims it. The claim is a lease that its process renews; a run
whose lease has ended, because the process was killed, stood still or lost the database, is pending
again, and goes on from its last checkpoint. Every write of a process, also of a checkpoint, holds
the row of its claim, so one that lost its lease changes nothing any more.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from langgraph_sdk.schema import CancelAction, MultitaskStrategy, RunStatus, ThreadStatus

from crag.errors import GoneError
from crag.page.rules import Rules
from crag.server.database import CANCELLED, QUEUE, Connection, Database, Fence, Row, queries
from crag.server.encoding import decoded, encoded
from crag.server.refusals import RefusedRequestError, not_found
from crag.server.settings import ServerSettings
from crag.server.threads import forget

FINISHED = frozenset({"success", "error", "interrupted", "timeout"})
_RETRY_AFTER = 2.0
_GREEDY = "You have {} unfinished runs, and {} are allowed: wait for one to end."
_FULL = "{} runs are waiting, and no more may: try again later."
_BUSY = (
    "Thread is already running a task. Wait for it to finish, or choose another multitask strategy."
)
_LATE = "the run waited for {:g} seconds, and no process was free; ask again later"
_LOST = "the run was begun {} times, and each time its process was lost; ask again"
_SQL = queries("runs")


@dataclass(frozen=True, kw_only=True, eq=False)
class Claim:
    """An attempt at a run, by this process."""

    run_id: UUID
    thread_id: UUID
    assistant_id: str
    graph_id: str
    request: dict[str, Any]
    attempt: int
    worker: UUID
    waited: float
    """Seconds since it was asked for."""

    @property
    def fence(self) -> Fence:
        """Return what every write of this attempt must hold: the run as its process claimed it."""
        mine = {"run": self.run_id, "worker": self.worker, "attempt": self.attempt}
        return Fence(_SQL["mine"] + "FOR SHARE", mine)


@dataclass(frozen=True)
class Failure:
    """Why a run ended; in the form of LangGraph's API."""

    error: str
    message: str


class Runs:
    """The runs of all owners."""

    def __init__(self, database: Database, settings: ServerSettings, rules: Rules) -> None:
        self.database, self.settings, self._rules = database, settings, rules

    async def create(  # noqa: PLR0913 - what a run consists of
        self, *, thread_id: UUID, owner: str, assistant_id: str, graph_id: str,
        request: dict[str, Any], metadata: dict[str, Any], strategy: MultitaskStrategy,
    ) -> Row:  # fmt: skip
        """Queue a run, or refuse it.

        It is refused if the thread is missing (404) or busy (409), the user has too many unfinished
        runs (429), or the queue is full (503).
        """
        async with self._changing(thread_id, owner) as connection:
            await self._check_limits(connection, owner)
            await self._make_way(connection, thread_id, strategy)
            (made,) = await connection.rows(
                _SQL["create"], run=uuid4(), thread=thread_id, owner=owner, assistant=assistant_id,
                graph=graph_id, request=encoded(request), metadata=metadata, strategy=strategy,
            )  # fmt: skip
            await self._settle(connection, thread_id, "busy", None)
            await connection.notify(QUEUE)
        return made

    async def _check_limits(self, connection: Connection, owner: str) -> None:
        limits = self.settings
        (counted,) = await connection.rows(_SQL["count"], owner=owner)
        if owner and counted["own"] >= limits.per_user:
            greedy = _GREEDY.format(counted["own"], limits.per_user)
            raise RefusedRequestError(429, greedy, _RETRY_AFTER)
        if counted["waiting"] >= limits.queue:
            raise RefusedRequestError(503, _FULL.format(counted["waiting"]), _RETRY_AFTER)

    async def get(self, owner: str, thread_id: UUID, run_id: UUID) -> Row:
        """Return a run, or refuse with 404."""
        found = await self.database.rows(_SQL["get"], run=run_id, thread=thread_id, owner=owner)
        return found[0] if found else not_found("Run")

    async def search(self, thread_id: UUID, **sent: object) -> list[Row]:
        """Return runs of a thread, the last one first; `sent` is what a client sends to search."""
        return await self.database.rows(_SQL["search"], thread=thread_id, **sent)

    async def cancel(self, run: Row, action: CancelAction) -> None:
        """End a run; one that is running ends at the process that runs it."""
        async with self._changing(run["thread_id"]) as connection:
            for row in await connection.rows(_SQL["lock"], run=run["run_id"]):
                await self._cancel(connection, row, action)

    async def delete(self, run: Row) -> None:
        """Remove a run that has ended; refuse another one with 409."""
        if not await self.database.rows(_SQL["delete"], run=run["run_id"]):
            raise RefusedRequestError(409, "The run has not ended: cancel it first.")

    async def claim(self, worker: UUID) -> Claim | None:
        """Take the next run: of who has the fewest running ones, the oldest of a free thread."""
        lease = self.settings.lease_seconds
        for row in await self.database.rows(_SQL["claim"], worker=worker, lease=lease):
            return Claim(**row | {"request": decoded(row["request"])})
        return None

    async def waiting(self) -> int:
        """Return how many runs of all owners wait for a process."""
        (row,) = await self.database.rows(_SQL["waiting"])
        return int(row["waiting"])

    async def renew(
        self, worker: UUID, claims: Collection[Claim]
    ) -> dict[Claim, CancelAction | None]:
        """Renew the leases of a process; return which claims are its own still.

        Each has how its run is to be cancelled, if it is.
        """
        runs, attempts = [one.run_id for one in claims], [one.attempt for one in claims]
        lease = self.settings.lease_seconds
        found = await self.database.rows(
            _SQL["renew"], runs=runs, attempts=attempts, worker=worker, lease=lease
        )
        numbered = dict(enumerate(claims, start=1))
        return {numbered[row["number"]]: row["cancel"] for row in found}

    async def finish(
        self, claim: Claim, status: RunStatus, thread_status: ThreadStatus = "idle",
        failure: Failure | None = None,
    ) -> None:  # fmt: skip
        """Store how a run ended; one that is to be rolled back goes, with its checkpoints.

        Raises:
            GoneError: it is not this process's any more.
        """
        async with self._changing(claim.thread_id) as connection:
            mine = await connection.rows(_SQL["mine"] + "FOR UPDATE", **claim.fence.values)
            if not mine:
                raise GoneError
            await self._end(connection, mine[0], status, thread_status, failure)

    async def release(self, worker: UUID) -> None:
        """Give back the runs of a process that is ending; the attempt does not count."""
        await self.database.rows(_SQL["release"], worker=worker)
        await self.tidy()

    async def tidy(self) -> None:
        """Take up lost runs, and end those that were lost too often or waited too long."""
        for due in await self.database.rows(_SQL["due"], run=None):
            async with self._changing(due["thread_id"]) as connection:
                # Again, and locked: another process may have been here.
                for run in await connection.rows(_SQL["due"] + "FOR UPDATE", run=due["run_id"]):
                    await self._take_up(connection, run)

    async def _take_up(self, connection: Connection, run: Row) -> None:
        limits = self.settings
        if run["status"] == "pending":
            late = Failure("QueueTimeout", _LATE.format(limits.queue_seconds))
            await self._end(connection, run, "timeout", failure=late)
        elif run["cancel"]:
            await self._end(connection, run, "interrupted")
        elif run["attempt"] >= limits.attempts:
            lost = Failure("RunLost", _LOST.format(limits.attempts))
            await self._end(connection, run, "error", failure=lost)
        else:
            await connection.rows(_SQL["take_up"], run=run["run_id"])
            await connection.notify(QUEUE)

    async def sweep(self) -> None:
        """Remove old streams, a user's old threads, and those made for one run which has ended."""
        seconds = self.settings.keep_seconds
        await self.database.rows(_SQL["sweep_streams"], seconds=seconds)
        kept = {"days": self._rules.thread_days, "most": self._rules.max_threads}
        async with self.database.transaction() as connection:
            removed = await connection.rows(_SQL["sweep_threads"], seconds=seconds, **kept)
            await forget(connection, [row["thread_id"] for row in removed])

    async def append(self, claim: Claim, parts: Collection[tuple[str, str]]) -> None:
        """Store the next parts of a stream: an event and its data as JSON.

        Raises:
            GoneError: the run is not this process's any more.
        """
        events, data = zip(*parts, strict=True)
        new = {"run": claim.run_id, "events": list(events), "data": list(data)}
        async with self.database.transaction(pipeline=True) as connection:
            await claim.fence.hold(connection)
            await connection.rows(_SQL["append"], **new)
            await connection.notify(claim.run_id)

    async def after(self, run_id: UUID, place: int) -> tuple[str | None, list[Row]]:
        """Return the status of a run, None if it was removed, and the parts after one."""
        run = await self.database.rows(_SQL["status"], run=run_id)
        # The status first: parts stored after it was read are read next time.
        parts = await self.database.rows(_SQL["after"], run=run_id, place=place)
        return (run[0]["status"] if run else None), parts

    async def follow(self, run_id: UUID, place: int) -> AsyncIterator[list[Row]]:
        """Yield the parts after one as they come, at times none, until the run has ended."""
        while True:
            rung = self.database.bells.hear(run_id)
            status, parts = await self.after(run_id, place)
            yield parts
            if parts:
                place = parts[-1]["place"]
            elif status is None or status in FINISHED:
                return
            else:
                await rung.heard_within(1.0)

    @asynccontextmanager
    async def _changing(
        self, thread_id: UUID, owner: str | None = None
    ) -> AsyncIterator[Connection]:
        """Yield a connection in a transaction that alone changes the runs of a thread.

        It is locked before any of its runs, as everywhere (see `crag.server.database`). If it is to
        be there and an owner's, it is refused with 404 otherwise.
        """
        async with self.database.transaction() as connection:
            owners = await connection.rows(_SQL["lock_thread"], thread=thread_id)
            if owner is not None and owners != [{"owner": owner}]:
                not_found("Thread")
            yield connection

    async def _make_way(
        self, connection: Connection, thread_id: UUID, strategy: MultitaskStrategy
    ) -> None:
        """Do with the unfinished runs of a thread what the new one asks for."""
        if strategy == "enqueue":
            return
        for run in await connection.rows(_SQL["lock_unfinished"], thread=thread_id):
            if strategy == "reject":
                raise RefusedRequestError(409, _BUSY)
            await self._cancel(connection, run, strategy)

    async def _cancel(self, connection: Connection, run: Row, action: CancelAction) -> None:
        """Cancel a run whose row is locked, so that nobody claims it meanwhile."""
        if run["status"] in FINISHED or run["cancel"] == "rollback":
            return
        if run["status"] == "pending":
            await self._end(connection, run | {"cancel": action}, "interrupted")
            return
        await connection.rows(_SQL["cancel"], cancel=action, run=run["run_id"])
        await connection.notify(CANCELLED)

    async def _end(
        self, connection: Connection, run: Row, status: RunStatus,
        thread_status: ThreadStatus = "idle", failure: Failure | None = None,
    ) -> None:  # fmt: skip
        """End a run whose row is locked."""
        run_id, thread_id = run["run_id"], run["thread_id"]
        error = encoded(failure) if failure else None
        if run["cancel"] == "rollback":
            thread_status, error = "idle", None
            await connection.rows(_SQL["roll_back"], run=run_id, thread=thread_id)
        else:
            await connection.rows(_SQL["end"], status=status, error=error, run=run_id)
        if error:
            thread_status = "error"
            await connection.rows(_SQL["append"], run=run_id, events=["error"], data=[error])
        await self._settle(connection, thread_id, thread_status, error)
        await connection.notify(run_id, QUEUE)

    async def _settle(
        self, connection: Connection, thread_id: UUID, status: ThreadStatus, error: str | None
    ) -> None:
        """Store the status of a thread, which is busy while runs wait for it."""
        new = {"status": status, "error": error, "seconds": self.settings.queue_seconds}
        await connection.rows(_SQL["settle"], thread=thread_id, **new)

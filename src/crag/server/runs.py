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
from uuid import UUID

from langgraph_sdk.schema import CancelAction, MultitaskStrategy, RunStatus, ThreadStatus

from crag.page.rules import Rules
from crag.server.database import CANCELLED, QUEUE, Connection, Database, Fence, Row, queries
from crag.server.replies import RefusedRequestError, encoded, not_found
from crag.server.settings import ServerSettings
from crag.server.threads import forget

Failure = dict[str, str]
"""Why a run ended: `error` and `message`, as in LangGraph's API."""
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
        return _SQL["mine"] + "FOR SHARE", vars(self)


class Runs:
    """The runs of all owners."""

    def __init__(self, database: Database, settings: ServerSettings, rules: Rules) -> None:
        self.database, self.settings, self._rules = database, settings, rules

    async def create(
        self, *, thread_id: UUID, owner: str, strategy: MultitaskStrategy, **new: Any
    ) -> Row:
        """Queue a run, or refuse it; `new` is what else it consists of.

        It is refused if the thread is missing (404) or busy (409), the user has too many unfinished
        runs (429), or the queue is full (503).
        """
        async with self._changing(thread_id, owner) as connection:
            await self._check_limits(connection, owner)
            if strategy != "enqueue":
                for run in await connection.rows(_SQL["lock_unfinished"], thread_id=thread_id):
                    if strategy == "reject":
                        raise RefusedRequestError(409, _BUSY)
                    await self._cancel(connection, run, strategy)
            new |= {"thread_id": thread_id, "owner": owner, "request": encoded(new["request"])}
            (made,) = await connection.rows(_SQL["create"], strategy=strategy, **new)
            await self._settle(connection, thread_id, "busy", None)
            await connection.notify(QUEUE)
        return made

    async def _check_limits(self, connection: Connection, owner: str) -> None:
        (counted,) = await connection.rows(_SQL["count"], owner=owner)
        if owner and counted["own"] >= self.settings.per_user:
            greedy = _GREEDY.format(counted["own"], self.settings.per_user)
            raise RefusedRequestError(429, greedy, _RETRY_AFTER)
        if counted["waiting"] >= self.settings.queue:
            raise RefusedRequestError(503, _FULL.format(counted["waiting"]), _RETRY_AFTER)

    async def get(self, owner: str, thread_id: UUID, run_id: UUID) -> Row:
        """Return a run, or refuse with 404."""
        run = {"run_id": run_id, "thread_id": thread_id, "owner": owner}
        found = await self.database.rows(_SQL["get"], **run)
        return found[0] if found else not_found("Run")

    async def search(self, thread_id: UUID, **sent: object) -> list[Row]:
        """Return runs of a thread, the last one first; `sent` is what a client sends to search."""
        return await self.database.rows(_SQL["search"], thread_id=thread_id, **sent)

    async def cancel(self, run: Row, action: CancelAction) -> None:
        """End a run; one that is running ends at the process that runs it."""
        async with self._changing(run["thread_id"]) as connection:
            for row in await connection.rows(_SQL["lock"], **run):
                await self._cancel(connection, row, action)

    async def delete(self, run: Row) -> None:
        """Remove a run that has ended; refuse another one with 409."""
        if not await self.database.rows(_SQL["delete"], **run):
            raise RefusedRequestError(409, "The run has not ended: cancel it first.")

    async def claim(self, worker: UUID) -> Claim | None:
        """Take the next run: of who has the fewest running ones, the oldest of a free thread."""
        lease = self.settings.lease_seconds
        claimed = await self.database.rows(_SQL["claim"], worker=worker, lease=lease)
        return Claim(**claimed[0]) if claimed else None

    async def waiting(self) -> int:
        """Return how many runs of all owners wait for a process."""
        (counted,) = await self.database.rows(_SQL["count"], owner=None)
        return int(counted["waiting"])

    async def renew(
        self, worker: UUID, claims: Collection[Claim]
    ) -> dict[Claim, CancelAction | None]:
        """Renew the leases of a process; return which claims are its own still.

        Each has how its run is to be cancelled, if it is.
        """
        mine = {"runs": [one.run_id for one in claims], "attempts": [one.attempt for one in claims]}
        lease = self.settings.lease_seconds
        found = await self.database.rows(_SQL["renew"], **mine, worker=worker, lease=lease)
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
            mine = await connection.hold((_SQL["mine"] + "FOR UPDATE", vars(claim)))
            await self._end(connection, mine, status, thread_status, failure)

    async def release(self, worker: UUID) -> None:
        """Give back the runs of a process that is ending; the attempt does not count."""
        await self.database.rows(_SQL["release"], worker=worker)
        await self.tidy()

    async def tidy(self) -> None:
        """Take up lost runs, and end those that were lost too often or waited too long."""
        for due in await self.database.rows(_SQL["due"], run_id=None):
            async with self._changing(due["thread_id"]) as connection:
                # Again, and locked: another process may have been here.
                for run in await connection.rows(_SQL["due"] + "FOR UPDATE", **due):
                    await self._take_up(connection, run)

    async def _take_up(self, connection: Connection, run: Row) -> None:
        limits = self.settings
        if run["status"] == "pending":
            late = {"error": "QueueTimeout", "message": _LATE.format(limits.queue_seconds)}
            await self._end(connection, run, "timeout", failure=late)
        elif run["cancel"]:
            await self._end(connection, run, "interrupted")
        elif run["attempt"] >= limits.attempts:
            lost = {"error": "RunLost", "message": _LOST.format(limits.attempts)}
            await self._end(connection, run, "error", failure=lost)
        else:
            await connection.rows(_SQL["take_up"], **run)
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
        new = {"run_id": claim.run_id, "events": list(events), "data": list(data)}
        async with self.database.transaction(pipeline=True) as connection:
            await connection.hold(claim.fence)
            await connection.rows(_SQL["append"], **new)
            await connection.notify(claim.run_id)

    async def after(self, run_id: UUID, place: int) -> tuple[str | None, list[Row]]:
        """Return the status of a run, None if it was removed, and the parts after one."""
        found = await self.database.rows(_SQL["after"], run_id=run_id, place=place)
        return (found[0]["status"] if found else None), [row for row in found if row["place"]]

    async def follow(self, run_id: UUID, place: int) -> AsyncIterator[list[Row]]:
        """Yield the parts after one as they come, at times none, until the run has ended."""
        while True:
            rung = self.database.bells.hear(run_id)
            status, parts = await self.after(run_id, place)
            yield parts
            if parts:
                place = parts[-1]["place"]
            elif status not in {"pending", "running"}:
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
            owners = await connection.rows(_SQL["lock_thread"], thread_id=thread_id)
            if owner is not None and owners != [{"owner": owner}]:
                not_found("Thread")
            yield connection

    async def _cancel(self, connection: Connection, run: Row, action: CancelAction) -> None:
        """Cancel a run whose row is locked, so that nobody claims it meanwhile."""
        if run["status"] == "pending":
            await self._end(connection, run | {"cancel": action}, "interrupted")
        elif run["status"] == "running" and run["cancel"] != "rollback":
            await connection.rows(_SQL["cancel"], **run | {"cancel": action})
            await connection.notify(CANCELLED)

    async def _end(
        self, connection: Connection, run: Row, status: RunStatus,
        thread_status: ThreadStatus = "idle", failure: Failure | None = None,
    ) -> None:  # fmt: skip
        """End a run whose row is locked."""
        error = encoded(failure) if failure else None
        if run["cancel"] == "rollback":
            thread_status, error = "idle", None
            await connection.rows(_SQL["roll_back"], **run)
        else:
            await connection.rows(_SQL["end"], **run | {"status": status, "error": error})
        if error:
            new = {"run_id": run["run_id"], "events": ["error"], "data": [error]}
            await connection.rows(_SQL["append"], **new)
        await self._settle(connection, run["thread_id"], thread_status, error)
        await connection.notify(run["run_id"], QUEUE)

    async def _settle(
        self, connection: Connection, thread_id: UUID, status: ThreadStatus, error: str | None
    ) -> None:
        """Store the status of a thread, which is busy while runs wait for it."""
        new = {"status": status, "error": error, "seconds": self.settings.queue_seconds}
        await connection.rows(_SQL["settle"], thread_id=thread_id, **new)

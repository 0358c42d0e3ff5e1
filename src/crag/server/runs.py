"""Runs as rows: a queue that any process takes from, leases, and the stream of each run.

A run is pending until a process claims it. The claim is a lease that its process renews; a run
whose lease has ended, because the process was killed, stood still or lost the database, is pending
again, and goes on from its last checkpoint. Every write of a process, also of a checkpoint, holds
the row of its claim, so one that lost its lease changes nothing any more.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from crag.page.rules import Rules
from crag.server.database import (
    CANCELLED,
    QUEUE,
    Connection,
    Database,
    Fence,
    FencedSaver,
    GoneError,
    Row,
    bell,
    notify,
    rows_of,
)
from crag.server.encoding import decoded, encoded
from crag.server.refusals import RefusedRequestError, not_found
from crag.server.settings import ServerSettings
from crag.server.threads import Status, forget_run, forget_threads, lock_thread

RunStatus = Literal["pending", "running", "success", "error", "interrupted", "timeout"]
FINISHED = frozenset({"success", "error", "interrupted", "timeout"})
Strategy = Literal["reject", "enqueue", "interrupt", "rollback"]
Cancel = Literal["interrupt", "rollback"]
_RETRY_AFTER = 2.0
_MINE = """
SELECT run_id, thread_id, cancel FROM crag_runs
WHERE run_id = %s AND worker = %s AND attempt = %s AND status = 'running'
"""
_DUE = """
SELECT run_id, thread_id, status, attempt, cancel FROM crag_runs
WHERE status IN ('pending', 'running') AND lease < now()
  AND (%(run)s::uuid IS NULL OR run_id = %(run)s)
"""


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """What a client asks for."""

    thread_id: UUID
    owner: str
    assistant_id: str
    graph_id: str
    request: dict[str, Any]
    metadata: dict[str, Any]
    strategy: Strategy


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
        return Fence(_MINE + "FOR SHARE", (self.run_id, self.worker, self.attempt))


@dataclass(frozen=True)
class Failure:
    """Why a run ended; in the form of LangGraph's API."""

    error: str
    message: str


class Runs:
    """The runs of all owners."""

    def __init__(self, database: Database, settings: ServerSettings, rules: Rules) -> None:
        self.database, self._settings, self._rules = database, settings, rules

    async def create(self, new: NewRun) -> Row:
        """Queue a run, or refuse it.

        Raises:
            RefusedRequestError: the thread is missing (404) or busy (409), the user has too many
                unfinished runs (429), or the queue is full (503).
        """
        async with self.database.transaction() as connection:
            if await lock_thread(connection, new.thread_id) != new.owner:
                not_found("Thread")
            await self._check_limits(connection, new.owner)
            await self._make_way(connection, new.thread_id, new.strategy)
            made = await rows_of(
                connection,
                """
                INSERT INTO crag_runs (run_id, thread_id, owner, assistant_id, graph_id, request,
                                       metadata, multitask_strategy)
                VALUES (%s, %s, %s, %s, %s, %s, %s, %s) RETURNING *
                """,
                (
                    uuid4(), new.thread_id, new.owner, new.assistant_id, new.graph_id,
                    encoded(new.request), Jsonb(new.metadata), new.strategy,
                ),
            )  # fmt: skip
            await connection.execute(
                "UPDATE crag_threads SET graph_id = %s WHERE thread_id = %s",
                (new.graph_id, new.thread_id),
            )
            await self._settle(connection, new.thread_id, "busy")
            await notify(connection, QUEUE)
        return made[0]

    async def _check_limits(self, connection: Connection, owner: str) -> None:
        limits = self._settings
        ((counted),) = await rows_of(
            connection,
            """
            SELECT count(*) FILTER (WHERE status = 'pending') AS waiting,
                   count(*) FILTER (WHERE owner = %s) AS own
            FROM crag_runs WHERE status IN ('pending', 'running')
            """,
            (owner,),
        )
        if owner and counted["own"] >= limits.per_user:
            detail = (
                f"You have {counted['own']} unfinished runs, and {limits.per_user} are allowed: "
                "wait for one to end."
            )
            raise RefusedRequestError(429, detail, _RETRY_AFTER)
        if counted["waiting"] >= limits.queue:
            detail = f"{counted['waiting']} runs are waiting, and no more may: try again later."
            raise RefusedRequestError(503, detail, _RETRY_AFTER)

    async def get(self, owner: str, thread_id: UUID, run_id: UUID) -> Row:
        """Return a run.

        Raises:
            RefusedRequestError: there is none.
        """
        found = await self.database.rows(
            "SELECT * FROM crag_runs WHERE run_id = %s AND thread_id = %s AND owner = %s",
            (run_id, thread_id, owner),
        )
        return found[0] if found else not_found("Run")

    async def search(
        self, owner: str, thread_id: UUID, status: RunStatus | None, *, limit: int, offset: int
    ) -> list[Row]:
        """Return the runs of a thread, the last one first."""
        return await self.database.rows(
            """
            SELECT * FROM crag_runs WHERE thread_id = %s AND owner = %s
              AND (%s::text IS NULL OR status = %s) ORDER BY place DESC LIMIT %s OFFSET %s
            """,
            (thread_id, owner, status, status, limit, offset),
        )

    async def cancel(self, run: Row, action: Cancel) -> None:
        """End a run; one that is running ends at the process that runs it."""
        async with self._changing(run["thread_id"]) as connection:
            found = await rows_of(
                connection,
                "SELECT * FROM crag_runs WHERE run_id = %s FOR UPDATE",
                (run["run_id"],),
            )
            for row in found:
                await self._cancel(connection, row, action)

    async def delete(self, run: Row) -> None:
        """Remove a run that has ended.

        Raises:
            RefusedRequestError: it has not.
        """
        removed = await self.database.rows(
            "DELETE FROM crag_runs WHERE run_id = %s AND status NOT IN ('pending', 'running') "
            "RETURNING run_id",
            (run["run_id"],),
        )
        if not removed:
            raise RefusedRequestError(409, "The run has not ended: cancel it first.")

    async def claim(self, worker: UUID) -> Claim | None:
        """Take the next run: of who has the fewest running ones, the oldest of a free thread."""
        found = await self.database.rows(
            """
            UPDATE crag_runs SET status = 'running', worker = %s, attempt = attempt + 1,
                lease = now() + make_interval(secs => %s), updated_at = now()
            WHERE run_id = (
                SELECT run_id FROM crag_runs AS r
                WHERE status = 'pending' AND NOT EXISTS (
                    SELECT 1 FROM crag_runs AS before
                    WHERE before.thread_id = r.thread_id AND (before.status = 'running' OR
                          (before.status = 'pending' AND before.place < r.place))
                )
                ORDER BY (SELECT count(*) FROM crag_runs AS others
                          WHERE others.status = 'running' AND others.owner = r.owner), place
                LIMIT 1 FOR UPDATE SKIP LOCKED
            ) AND status = 'pending' RETURNING *
            """,
            (worker, self._settings.lease_seconds),
        )
        if not found:
            return None
        row = found[0]
        return Claim(
            run_id=row["run_id"], thread_id=row["thread_id"], assistant_id=row["assistant_id"],
            graph_id=row["graph_id"], request=decoded(row["request"]), attempt=row["attempt"],
            worker=worker, waited=(row["updated_at"] - row["created_at"]).total_seconds(),
        )  # fmt: skip

    async def waiting(self) -> int:
        """Return how many runs of all owners wait for a process."""
        (row,) = await self.database.rows(
            "SELECT count(*) AS waiting FROM crag_runs WHERE status = 'pending'"
        )
        return int(row["waiting"])

    async def renew(self, worker: UUID, claims: Collection[Claim]) -> dict[Claim, Cancel | None]:
        """Renew the leases of a process; return which claims are its own still.

        Each has how its run is to be cancelled, if it is. A row that somebody has locked is left
        for the next time: who holds it may stand still.
        """
        found = await self.database.rows(
            """
            WITH mine AS (
                SELECT r.* FROM crag_runs AS r JOIN unnest(%s::uuid[], %s::integer[])
                    AS claims (run_id, attempt) USING (run_id, attempt)
                WHERE worker = %s AND status = 'running'
            ), free AS (
                SELECT run_id FROM crag_runs WHERE run_id IN (SELECT run_id FROM mine)
                    AND worker = %s AND status = 'running' FOR NO KEY UPDATE SKIP LOCKED
            ), renewed AS (
                UPDATE crag_runs SET lease = now() + make_interval(secs => %s)
                WHERE run_id IN (SELECT run_id FROM free)
            )
            SELECT run_id, attempt, cancel FROM mine
            """,
            (
                [claim.run_id for claim in claims], [claim.attempt for claim in claims],
                worker, worker, self._settings.lease_seconds,
            ),
        )  # fmt: skip
        cancelled = {(row["run_id"], row["attempt"]): row["cancel"] for row in found}
        return {
            claim: cancelled[key]
            for claim in claims
            if (key := (claim.run_id, claim.attempt)) in cancelled
        }

    def saver(self, claim: Claim) -> FencedSaver:
        """Return a checkpointer for as long as the claim lasts."""
        return FencedSaver(self.database, claim.fence)

    async def finish(
        self, claim: Claim, status: RunStatus, thread_status: Status, failure: Failure | None = None
    ) -> None:
        """Store how a run ended; one that is to be rolled back goes, with its checkpoints.

        Raises:
            GoneError: it is not this process's any more.
        """
        async with self._changing(claim.thread_id) as connection:
            found = await rows_of(connection, _MINE + "FOR UPDATE", claim.fence.values)
            if not found:
                raise GoneError
            await self._end(connection, found[0], status, thread_status, failure)

    async def release(self, worker: UUID) -> None:
        """Give back the runs of a process that is ending; the attempt does not count."""
        await self.database.rows(
            "UPDATE crag_runs SET lease = now(), attempt = attempt - 1 "
            "WHERE worker = %s AND status = 'running'",
            (worker,),
        )
        await self.tidy()

    async def tidy(self) -> None:
        """Take up lost runs, and end those that were lost too often or waited too long."""
        for due in await self.database.rows(_DUE, {"run": None}):
            async with self._changing(due["thread_id"]) as connection:
                # Again, and locked: another process may have been here.
                for run in await rows_of(connection, _DUE + "FOR UPDATE", {"run": due["run_id"]}):
                    await self._take_up(connection, run)

    async def _take_up(self, connection: Connection, run: Row) -> None:
        limits = self._settings
        if run["status"] == "pending":
            message = (
                f"the run waited for {limits.queue_seconds:g} seconds, and no process was free; "
                "ask again later"
            )
            late = Failure("QueueTimeout", message)
            await self._end(connection, run, "timeout", "error", late)
        elif run["cancel"]:
            await self._end(connection, run, "interrupted", "idle")
        elif run["attempt"] >= limits.attempts:
            message = (
                f"the run was begun {limits.attempts} times, and each time its process was lost; "
                "ask again"
            )
            lost = Failure("RunLost", message)
            await self._end(connection, run, "error", "error", lost)
        else:
            await connection.execute(
                "UPDATE crag_runs SET status = 'pending', worker = NULL, lease = NULL "
                "WHERE run_id = %s",
                (run["run_id"],),
            )
            await notify(connection, QUEUE)

    async def sweep(self) -> None:
        """Remove old streams, a user's old threads, and those made for one run which has ended."""
        limits = self._settings
        await self.database.rows(
            """
            DELETE FROM crag_run_events WHERE run_id IN (
                SELECT run_id FROM crag_runs AS r
                WHERE status NOT IN ('pending', 'running')
                  AND updated_at < now() - make_interval(secs => %s)
                  AND EXISTS (SELECT 1 FROM crag_run_events AS e WHERE e.run_id = r.run_id)
                FOR UPDATE SKIP LOCKED)
            """,
            (limits.keep_seconds,),
        )
        async with self.database.transaction() as connection:
            removed = await rows_of(
                connection,
                """
                DELETE FROM crag_threads WHERE thread_id IN (
                    SELECT thread_id FROM crag_threads
                    WHERE status <> 'busy'
                      AND (temporary AND updated_at < now() - make_interval(secs => %s)
                        OR updated_at < now() - make_interval(days => %s)
                        OR thread_id IN (
                            SELECT thread_id FROM (
                                SELECT thread_id, row_number() OVER (
                                    PARTITION BY owner ORDER BY updated_at DESC) AS place
                                FROM crag_threads) AS newest_first
                            WHERE place > %s))
                    FOR UPDATE SKIP LOCKED)
                RETURNING thread_id
                """,
                (limits.keep_seconds, self._rules.thread_days, self._rules.max_threads),
            )
            await forget_threads(connection, [row["thread_id"] for row in removed])

    async def append(self, claim: Claim, first: int, events: list[tuple[str, str]]) -> None:
        """Store parts of a stream, the first of which has the number `first`.

        Raises:
            GoneError: the run is not this process's any more.
        """
        async with self.database.transaction(pipeline=True) as connection:
            await claim.fence.hold(connection)
            await connection.execute(
                """
                INSERT INTO crag_run_events (run_id, place, event, data)
                SELECT %s, * FROM unnest(%s::integer[], %s::text[], %s::text[])
                """,
                (
                    claim.run_id, list(range(first, first + len(events))),
                    [name for name, _ in events], [data for _, data in events],
                ),
            )  # fmt: skip
            await notify(connection, bell(claim.run_id))

    async def last_place(self, run_id: UUID) -> int:
        """Return the number of the last part of a stream, 0 if there is none."""
        (row,) = await self.database.rows(
            "SELECT coalesce(max(place), 0) AS place FROM crag_run_events WHERE run_id = %s",
            (run_id,),
        )
        return int(row["place"])

    async def after(self, run_id: UUID, place: int) -> tuple[str | None, list[Row]]:
        """Return the status of a run, None if it was removed, and the parts after one."""
        found = await self.database.rows(
            "SELECT status FROM crag_runs WHERE run_id = %s", (run_id,)
        )
        # The status first: parts stored after it was read are read next time.
        parts = await self.database.rows(
            """
            SELECT place, event, data FROM crag_run_events WHERE run_id = %s AND place > %s
            ORDER BY place LIMIT 200
            """,
            (run_id, place),
        )
        return (found[0]["status"] if found else None), parts

    @asynccontextmanager
    async def _changing(self, thread_id: UUID) -> AsyncIterator[Connection]:
        """Yield a connection in a transaction that alone changes the runs of a thread.

        The thread is locked before any of its runs, as everywhere: see `crag.server.database`.
        """
        async with self.database.transaction() as connection:
            await lock_thread(connection, thread_id)
            yield connection

    async def _make_way(self, connection: Connection, thread_id: UUID, strategy: Strategy) -> None:
        """Do with the unfinished runs of a thread what the new one asks for."""
        if strategy == "enqueue":
            return
        unfinished = await rows_of(
            connection,
            "SELECT * FROM crag_runs WHERE thread_id = %s AND status IN ('pending', 'running') "
            "ORDER BY place FOR UPDATE",
            (thread_id,),
        )
        if unfinished and strategy == "reject":
            detail = (
                "Thread is already running a task. Wait for it to finish, or choose another "
                "multitask strategy."
            )
            raise RefusedRequestError(409, detail)
        for run in unfinished:
            await self._cancel(
                connection, run, "rollback" if strategy == "rollback" else "interrupt"
            )

    async def _cancel(self, connection: Connection, run: Row, action: Cancel) -> None:
        """Cancel a run whose row is locked, so that nobody claims it meanwhile."""
        if run["status"] in FINISHED or run["cancel"] == "rollback":
            return
        if run["status"] == "pending":
            await self._end(connection, run | {"cancel": action}, "interrupted", "idle")
            return
        await connection.execute(
            "UPDATE crag_runs SET cancel = %s WHERE run_id = %s", (action, run["run_id"])
        )
        await notify(connection, CANCELLED)

    async def _end(
        self,
        connection: Connection,
        run: Row,
        status: RunStatus,
        thread_status: Status,
        failure: Failure | None = None,
    ) -> None:
        """End a run whose row is locked."""
        run_id, thread_id = run["run_id"], run["thread_id"]
        error = encoded(failure) if failure else None
        if run["cancel"] == "rollback":
            thread_status, error = "idle", None
            await forget_run(connection, thread_id, run_id)
            await connection.execute("DELETE FROM crag_runs WHERE run_id = %s", (run_id,))
        else:
            await connection.execute(
                "UPDATE crag_runs SET status = %s, error = %s, worker = NULL, lease = NULL, "
                "updated_at = now() WHERE run_id = %s",
                (status, error, run_id),
            )
        if error:
            await connection.execute(
                """
                INSERT INTO crag_run_events (run_id, place, event, data)
                SELECT %s, coalesce(max(place), 0) + 1, 'error', %s
                FROM crag_run_events WHERE run_id = %s
                """,
                (run_id, error, run_id),
            )
        await self._settle(connection, thread_id, thread_status, error)
        await notify(connection, bell(run_id), QUEUE)

    async def _settle(
        self, connection: Connection, thread_id: UUID, status: Status, error: str | None = None
    ) -> None:
        """Store the status of a thread, which is busy while runs wait for it.

        The first of them waits for a process from now on, and those behind it for it.
        """
        await connection.execute(
            """
            UPDATE crag_threads SET updated_at = now(), error = %s, status = CASE WHEN EXISTS (
                SELECT 1 FROM crag_runs WHERE thread_id = %s AND status IN ('pending', 'running')
            ) THEN 'busy' ELSE %s END WHERE thread_id = %s
            """,
            (error, thread_id, status, thread_id),
        )
        await connection.execute(
            """
            UPDATE crag_runs SET lease = now() + make_interval(secs => %s)
            WHERE lease IS NULL AND attempt = 0 AND run_id = (
                SELECT run_id FROM crag_runs
                WHERE thread_id = %s AND status IN ('pending', 'running') ORDER BY place LIMIT 1)
            """,
            (self._settings.queue_seconds, thread_id),
        )

"""Runs as rows: a queue that any process takes from, leases, and the stream of each run.

A run is pending until a process claims it. The claim is a lease that its process renews; a run
whose lease has ended, because the process was killed or lost the database, is pending again, and
goes on from its last checkpoint. Every write of a process names the attempt it belongs to, so one
that lost its lease changes nothing any more.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from crag.page.rules import Rules
from crag.server.database import Connection, Database, Row, notify, rows_of
from crag.server.encoding import decoded, encoded
from crag.server.refusals import RefusedRequestError, not_found
from crag.server.settings import ServerSettings
from crag.server.threads import Status, forget_run, forget_threads

FINISHED = frozenset({"success", "error", "interrupted", "timeout"})
QUEUE = "queue"
"""The bell that rings when a run may be claimed."""
CANCELLED = "cancelled"
"""The bell that rings when a running run is to be cancelled."""
Strategy = Literal["reject", "enqueue", "interrupt", "rollback"]
Cancel = Literal["interrupt", "rollback"]
_RETRY_AFTER = 2.0
_LAST_PART = """
INSERT INTO crag_run_events (run_id, place, event, data)
SELECT %(run)s, coalesce(max(place), 0) + 1, 'error', %(error)s
FROM crag_run_events WHERE run_id = %(run)s
"""


def bell(run_id: UUID) -> str:
    """Return the bell that rings when a run, or its stream, has changed."""
    return f"run:{run_id}"


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


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A run that this process works on."""

    run_id: UUID
    thread_id: UUID
    assistant_id: str
    graph_id: str
    request: dict[str, Any]
    attempt: int
    worker: UUID
    waited: float
    """Seconds since it was asked for."""


@dataclass(frozen=True, kw_only=True)
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
            locked = await rows_of(
                connection,
                "SELECT 1 FROM crag_threads WHERE thread_id = %s AND owner = %s FOR UPDATE",
                (new.thread_id, new.owner),
            )
            if not locked:
                not_found("Thread")
            await self._check_limits(connection, new.owner)
            await _make_way(connection, new.thread_id, new.strategy)
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
                """
                UPDATE crag_threads SET status = 'busy', error = NULL, graph_id = %s,
                    updated_at = now() WHERE thread_id = %s
                """,
                (new.graph_id, new.thread_id),
            )
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
        self, owner: str, thread_id: UUID, status: str | None, *, limit: int, offset: int
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
        async with self.database.transaction() as connection:
            await _cancel(connection, run["thread_id"], run["run_id"], action)

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
        try:
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
        except psycopg.errors.UniqueViolation:  # Another process has just taken one of its thread.
            return None
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

    async def renew(self, worker: UUID, working: Collection[UUID]) -> dict[UUID, Cancel | None]:
        """Renew the leases of runs that a process is at work on; return which are its own still.

        Each has how it is to be cancelled, if it is. A run that the process has given up, as its
        connection broke, keeps its lease until that ends, and then is anybody's.
        """
        found = await self.database.rows(
            """
            UPDATE crag_runs SET lease = now() + make_interval(secs => %s)
            WHERE worker = %s AND status = 'running' AND run_id = ANY(%s)
            RETURNING run_id, cancel
            """,
            (self._settings.lease_seconds, worker, list(working)),
        )
        return {row["run_id"]: row["cancel"] for row in found}

    async def finish(
        self, claim: Claim, status: str, thread_status: Status, failure: Failure | None = None
    ) -> bool:
        """Store how a run ended, unless it is not this process's any more."""
        error = encoded(failure) if failure else None
        async with self.database.transaction() as connection:
            changed = await rows_of(
                connection,
                """
                UPDATE crag_runs SET status = %s, error = %s, worker = NULL, lease = NULL,
                    updated_at = now()
                WHERE run_id = %s AND worker = %s AND attempt = %s AND status = 'running'
                RETURNING run_id
                """,
                (status, error, claim.run_id, claim.worker, claim.attempt),
            )
            if not changed:
                return False
            if error:
                await connection.execute(_LAST_PART, {"run": claim.run_id, "error": error})
            await _settle(connection, claim.thread_id, thread_status, error)
            await notify(connection, bell(claim.run_id), QUEUE)
        return True

    async def roll_back(self, claim: Claim, thread_status: Status) -> None:
        """Remove a run and its checkpoints."""
        async with self.database.transaction() as connection:
            await forget_run(connection, claim.thread_id, claim.run_id)
            await connection.execute("DELETE FROM crag_runs WHERE run_id = %s", (claim.run_id,))
            await _settle(connection, claim.thread_id, thread_status, None)
            await notify(connection, bell(claim.run_id), QUEUE)

    async def release(self, worker: UUID) -> None:
        """Give back the runs of a process that is ending; the attempt does not count."""
        async with self.database.transaction() as connection:
            await connection.execute(
                """
                UPDATE crag_runs SET status = 'pending', worker = NULL, lease = NULL,
                    attempt = attempt - 1 WHERE worker = %s AND status = 'running'
                """,
                (worker,),
            )
            await notify(connection, QUEUE)

    async def tidy(self) -> None:
        """Take up lost runs, and end those that were lost too often or waited too long."""
        limits = self._settings
        lost = Failure(
            error="RunLost",
            message=f"the run was begun {limits.attempts} times, and each time its process was "
            "lost; ask again",
        )
        late = Failure(
            error="QueueTimeout",
            message=f"the run waited for {limits.queue_seconds:g} seconds, and no process was "
            "free; ask again later",
        )
        async with self.database.transaction() as connection:
            again = await rows_of(
                connection,
                """
                UPDATE crag_runs SET status = 'pending', worker = NULL, lease = NULL
                WHERE status = 'running' AND lease < now() AND attempt < %s RETURNING run_id
                """,
                (limits.attempts,),
            )
            ended = await rows_of(
                connection,
                """
                UPDATE crag_runs SET worker = NULL, lease = NULL, updated_at = now(),
                    status = CASE status WHEN 'running' THEN 'error' ELSE 'timeout' END,
                    error = CASE status WHEN 'running' THEN %s ELSE %s END
                WHERE (status = 'running' AND lease < now())
                   OR (status = 'pending' AND attempt = 0
                       AND created_at < now() - make_interval(secs => %s))
                RETURNING run_id, thread_id, error
                """,
                (encoded(lost), encoded(late), limits.queue_seconds),
            )
            for row in ended:
                await connection.execute(_LAST_PART, {"run": row["run_id"], "error": row["error"]})
                await _settle(connection, row["thread_id"], "error", row["error"])
            if again or ended:
                await notify(connection, QUEUE, *(bell(row["run_id"]) for row in ended))

    async def sweep(self) -> None:
        """Remove old streams, a user's old threads, and those made for one run which has ended."""
        limits = self._settings
        async with self.database.transaction() as connection:
            await connection.execute(
                """
                DELETE FROM crag_run_events WHERE run_id IN (
                    SELECT run_id FROM crag_run_events AS e JOIN crag_runs AS r USING (run_id)
                    WHERE e.place = 1 AND r.status NOT IN ('pending', 'running')
                      AND r.updated_at < now() - make_interval(secs => %s))
                """,
                (limits.keep_seconds,),
            )
            removed = await rows_of(
                connection,
                """
                DELETE FROM crag_threads AS t
                WHERE (temporary AND updated_at < now() - make_interval(secs => %s)
                    OR updated_at < now() - make_interval(days => %s)
                    OR thread_id IN (
                        SELECT thread_id FROM (
                            SELECT thread_id, row_number() OVER (
                                PARTITION BY owner ORDER BY updated_at DESC) AS place
                            FROM crag_threads) AS newest_first
                        WHERE place > %s))
                  AND NOT EXISTS (
                    SELECT 1 FROM crag_runs AS r
                    WHERE r.thread_id = t.thread_id AND r.status IN ('pending', 'running'))
                RETURNING thread_id
                """,
                (limits.keep_seconds, self._rules.thread_days, self._rules.max_threads),
            )
            await forget_threads(connection, [row["thread_id"] for row in removed])

    async def append(self, claim: Claim, first: int, events: list[tuple[str, str]]) -> None:
        """Store parts of a stream, the first of which has the number `first`."""
        places = list(range(first, first + len(events)))
        await self.database.rows(
            """
            WITH stored AS (
                INSERT INTO crag_run_events (run_id, place, event, data)
                SELECT %s, * FROM unnest(%s::integer[], %s::text[], %s::text[])
            )
            SELECT pg_notify('crag', %s)
            """,
            (
                claim.run_id, places, [name for name, _ in events], [data for _, data in events],
                bell(claim.run_id),
            ),
        )  # fmt: skip

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


async def _make_way(connection: Connection, thread_id: UUID, strategy: Strategy) -> None:
    """Do with the unfinished runs of a thread what the new one asks for."""
    if strategy == "enqueue":
        return
    unfinished = await rows_of(
        connection,
        "SELECT run_id FROM crag_runs WHERE thread_id = %s AND status IN ('pending', 'running')",
        (thread_id,),
    )
    if unfinished and strategy == "reject":
        detail = (
            "Thread is already running a task. Wait for it to finish, or choose another "
            "multitask strategy."
        )
        raise RefusedRequestError(409, detail)
    for row in unfinished:
        action: Cancel = "rollback" if strategy == "rollback" else "interrupt"
        await _cancel(connection, thread_id, row["run_id"], action)


async def _cancel(connection: Connection, thread_id: UUID, run_id: UUID, action: Cancel) -> None:
    await connection.execute(
        "UPDATE crag_runs SET cancel = %s WHERE run_id = %s AND status = 'running'",
        (action, run_id),
    )
    if action == "rollback":
        waiting = await rows_of(
            connection,
            "DELETE FROM crag_runs WHERE run_id = %s AND status = 'pending' RETURNING run_id",
            (run_id,),
        )
    else:
        waiting = await rows_of(
            connection,
            """
            UPDATE crag_runs SET status = 'interrupted', updated_at = now()
            WHERE run_id = %s AND status = 'pending' RETURNING run_id
            """,
            (run_id,),
        )
    if waiting:
        await _settle(connection, thread_id, "idle", None)
    await notify(connection, bell(run_id), QUEUE, CANCELLED)


async def _settle(
    connection: Connection, thread_id: UUID, status: Status, error: str | None
) -> None:
    """Store the status of a thread; it stays busy while other runs wait for it."""
    await connection.execute(
        """
        UPDATE crag_threads SET updated_at = now(), error = %s, status = CASE WHEN EXISTS (
            SELECT 1 FROM crag_runs WHERE thread_id = %s AND status IN ('pending', 'running')
        ) THEN 'busy' ELSE %s END WHERE thread_id = %s
        """,
        (error, thread_id, status, thread_id),
    )

"""Threads: who owns them, what state they are in, and copies of them."""

from typing import Any, Literal
from uuid import UUID, uuid4

from psycopg.sql import SQL, Identifier
from psycopg.types.json import Jsonb

from crag.page.keeping import MINUTE, TooFastError
from crag.server.database import (
    CANCELLED,
    Connection,
    Database,
    Fence,
    FencedSaver,
    Row,
    bell,
    notify,
    rows_of,
)
from crag.server.refusals import RefusedRequestError, not_found

Status = Literal["idle", "busy", "interrupted", "error"]
_TABLES = tuple(map(Identifier, ("checkpoints", "checkpoint_blobs", "checkpoint_writes")))
"""Those of langgraph-checkpoint-postgres, which neither copies a thread nor deletes several."""
_COPY = SQL("""
INSERT INTO {table} SELECT (jsonb_populate_record(old, jsonb_build_object('thread_id', %s::text))).*
FROM {table} AS old WHERE thread_id = %s
""")
_FORGET = SQL("DELETE FROM {table} WHERE thread_id = ANY(%s)")


class Threads:
    """The threads of one owner; those of others do not exist for them."""

    def __init__(self, database: Database, owner: str, most_per_minute: int | None = None) -> None:
        self._database, self.owner, self._most_per_minute = database, owner, most_per_minute

    async def create(
        self,
        thread_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        *,
        graph_id: str | None = None,
        temporary: bool = False,
        if_exists: Literal["raise", "do_nothing"] = "raise",
    ) -> Row:
        """Make a thread.

        Raises:
            RefusedRequestError: there is one with this id, of this owner or another; or the user
                has made too many within a minute.
        """
        if not temporary:
            await self._check_pace()
        metadata = metadata or {}
        graph_id = graph_id or metadata.get("graph_id")
        made = await self._database.rows(
            """
            INSERT INTO crag_threads (thread_id, owner, graph_id, metadata, temporary)
            VALUES (%s, %s, %s, %s, %s) ON CONFLICT (thread_id) DO NOTHING RETURNING *
            """,
            (thread_id or uuid4(), self.owner, graph_id, Jsonb(metadata), temporary),
        )
        if made:
            return made[0]
        if thread_id is not None and if_exists == "do_nothing":
            return await self.get(thread_id)
        raise RefusedRequestError(409, f"Thread {thread_id} exists already.")

    async def _check_pace(self) -> None:
        """Refuse one more thread of a user who has made many; two at once may both be the last."""
        if not self.owner or self._most_per_minute is None:
            return
        ((counted),) = await self._database.rows(
            """
            SELECT count(*) AS made FROM crag_threads WHERE owner = %s AND NOT temporary
              AND created_at > now() - make_interval(secs => %s)
            """,
            (self.owner, MINUTE),
        )
        if counted["made"] >= self._most_per_minute:
            raise RefusedRequestError(429, str(TooFastError(self._most_per_minute)), MINUTE)

    async def get(self, thread_id: UUID) -> Row:
        """Return a thread.

        Raises:
            RefusedRequestError: there is none.
        """
        found = await self._database.rows(
            "SELECT * FROM crag_threads WHERE thread_id = %s AND owner = %s",
            (thread_id, self.owner),
        )
        return found[0] if found else not_found("Thread")

    async def search(  # noqa: PLR0913 - one parameter for each of the API
        self,
        metadata: dict[str, Any],
        status: Status | None,
        ids: list[UUID] | None,
        *,
        limit: int,
        offset: int,
        by: str = "created_at",
        ascending: bool = False,
    ) -> list[Row]:
        """Return the threads that match everything given, in an order."""
        return await self._database.rows(
            """
            SELECT * FROM crag_threads
            WHERE owner = %s AND NOT temporary AND metadata @> %s
              AND (%s::text IS NULL OR status = %s) AND (%s::uuid[] IS NULL OR thread_id = ANY(%s))
            ORDER BY
              CASE WHEN %s THEN (to_jsonb(crag_threads) ->> %s) END ASC,
              CASE WHEN NOT %s THEN (to_jsonb(crag_threads) ->> %s) END DESC, thread_id
            LIMIT %s OFFSET %s
            """,
            (
                self.owner, Jsonb(metadata), status, status, ids, ids,
                ascending, by, ascending, by, limit, offset,
            ),
        )  # fmt: skip

    async def update(self, thread_id: UUID, metadata: dict[str, Any]) -> Row:
        """Add to the metadata of a thread."""
        changed = await self._database.rows(
            """
            UPDATE crag_threads SET metadata = metadata || %s, updated_at = now()
            WHERE thread_id = %s AND owner = %s RETURNING *
            """,
            (Jsonb(metadata), thread_id, self.owner),
        )
        return changed[0] if changed else not_found("Thread")

    async def settle(self, thread_id: UUID, status: Status, graph_id: str) -> None:
        """Store what a changed state means for the thread, unless a run is at work on it."""
        await self._database.rows(
            """
            UPDATE crag_threads SET updated_at = now(), graph_id = %s,
              status = CASE WHEN status = 'busy' THEN status ELSE %s END
            WHERE thread_id = %s AND owner = %s
            """,
            (graph_id, status, thread_id, self.owner),
        )

    def saver(self, thread_id: UUID) -> FencedSaver:
        """Return a checkpointer for as long as the thread is there and the owner's."""
        return FencedSaver(self._database, self._fence(thread_id))

    def _fence(self, thread_id: UUID) -> Fence:
        mine = "SELECT 1 FROM crag_threads WHERE thread_id = %s AND owner = %s FOR KEY SHARE"
        return Fence(mine, (thread_id, self.owner))

    async def delete(self, thread_id: UUID) -> None:
        """Remove a thread with its runs and checkpoints; what is at work on it can write no more.

        Raises:
            RefusedRequestError: there is none.
        """
        async with self._database.transaction() as connection:
            own = (thread_id, self.owner)
            runs = await rows_of(
                connection,
                "SELECT run_id FROM crag_runs WHERE thread_id = %s AND owner = %s",
                own,
            )
            # This waits for whoever is writing, and the checkpoints go after the last of them.
            removed = await rows_of(
                connection,
                "DELETE FROM crag_threads WHERE thread_id = %s AND owner = %s RETURNING thread_id",
                own,
            )
            if not removed:
                not_found("Thread")
            await forget_threads(connection, [thread_id])
            await notify(connection, CANCELLED, *(bell(row["run_id"]) for row in runs))

    async def copy(self, thread_id: UUID) -> Row:
        """Copy a thread with its checkpoints, but without its runs.

        Raises:
            RefusedRequestError: there is none, or the user has made too many within a minute.
        """
        await self._check_pace()
        new = uuid4()
        async with self._database.transaction() as connection:
            await self._fence(thread_id).hold(connection)
            for table in _TABLES:
                await connection.execute(_COPY.format(table=table), (str(new), str(thread_id)))
            made = await rows_of(
                connection,
                """
                INSERT INTO crag_threads (thread_id, owner, graph_id, metadata, status)
                SELECT %s, owner, graph_id, metadata,
                    CASE status WHEN 'busy' THEN 'idle' ELSE status END
                FROM crag_threads WHERE thread_id = %s RETURNING *
                """,
                (new, thread_id),
            )
        return made[0]


async def lock_thread(connection: Connection, thread_id: UUID) -> str | None:
    """Let nobody else change the runs of a thread until the transaction ends; return its owner."""
    query = "SELECT owner FROM crag_threads WHERE thread_id = %s FOR NO KEY UPDATE"
    return next((row["owner"] for row in await rows_of(connection, query, (thread_id,))), None)


async def forget_run(connection: Connection, thread_id: UUID, run_id: UUID) -> None:
    """Remove the checkpoints that a run made, so that its thread is as it was before."""
    await connection.execute(
        """
        WITH removed AS (
            DELETE FROM checkpoints WHERE thread_id = %s AND metadata ->> 'run_id' = %s
            RETURNING thread_id, checkpoint_ns, checkpoint_id
        )
        DELETE FROM checkpoint_writes AS w USING removed AS r
        WHERE (w.thread_id, w.checkpoint_ns, w.checkpoint_id)
            = (r.thread_id, r.checkpoint_ns, r.checkpoint_id)
        """,
        (str(thread_id), str(run_id)),
    )


async def forget_threads(connection: Connection, threads: list[UUID]) -> None:
    """Remove the checkpoints of threads."""
    for table in _TABLES:
        await connection.execute(_FORGET.format(table=table), ([*map(str, threads)],))

"""Threads: who owns them, what state they are in, and copies of them."""

from typing import Any, Literal, LiteralString
from uuid import UUID, uuid4

from psycopg.sql import SQL, Identifier

from crag.page.keeping import MINUTE, TooFastError
from crag.server.database import CANCELLED, Connection, Database, Fence, Row
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
    """The threads of one owner; those of others do not exist for them, and are refused with 404."""

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
        """Make a thread; refuse an id that is taken, with 409, and too many within a minute."""
        if not temporary:
            await self._check_pace()
        metadata = metadata or {}
        query = """
            INSERT INTO crag_threads (thread_id, owner, graph_id, metadata, temporary)
            VALUES (%(thread)s, %(owner)s, %(graph)s, %(metadata)s, %(temporary)s)
            ON CONFLICT (thread_id) DO NOTHING RETURNING *
        """
        made = await self._database.row(
            query,
            thread=thread_id or uuid4(),
            owner=self.owner,
            metadata=metadata,
            temporary=temporary,
            graph=graph_id or metadata.get("graph_id"),
        )
        if made:
            return made
        if thread_id and if_exists == "do_nothing":
            return await self.get(thread_id)
        raise RefusedRequestError(409, f"Thread {thread_id} exists already.")

    async def _check_pace(self) -> None:
        """Refuse one more thread of a user who has made many; two at once may both be the last."""
        most = self._most_per_minute
        if not self.owner or most is None:
            return
        query = """
            SELECT 1 FROM crag_threads WHERE owner = %(owner)s AND NOT temporary
              AND created_at > now() - make_interval(secs => %(minute)s) LIMIT %(most)s
        """
        made = await self._database.rows(query, owner=self.owner, minute=MINUTE, most=most)
        if len(made) >= most:
            raise RefusedRequestError(429, str(TooFastError(most)), MINUTE)

    async def get(self, thread_id: UUID) -> Row:
        """Return a thread."""
        mine = "SELECT * FROM crag_threads WHERE thread_id = %(thread)s AND owner = %(owner)s"
        return await self._own(mine, thread_id)

    async def search(
        self, sort_by: str | None, sort_order: str | None, **sent: object
    ) -> list[Row]:
        """Return threads in an order; `sent` is what else a client sends to search for them."""
        query = SQL("""
            SELECT * FROM crag_threads
            WHERE owner = %(owner)s AND NOT temporary
              AND (%(metadata)s::jsonb IS NULL OR metadata @> %(metadata)s)
              AND (%(status)s::text IS NULL OR status = %(status)s)
              AND (%(ids)s::uuid[] IS NULL OR thread_id = ANY(%(ids)s))
            ORDER BY {by} {order}, thread_id LIMIT %(limit)s OFFSET %(offset)s
        """)
        by, ascending = Identifier(sort_by or "created_at"), sort_order == "asc"
        sorted_query = query.format(by=by, order=SQL("ASC" if ascending else "DESC"))
        return await self._database.rows(sorted_query, owner=self.owner, **sent)

    async def update(self, thread_id: UUID, metadata: dict[str, Any]) -> Row:
        """Add to the metadata of a thread."""
        change = """
            UPDATE crag_threads SET metadata = metadata || %(metadata)s, updated_at = now()
            WHERE thread_id = %(thread)s AND owner = %(owner)s RETURNING *
        """
        return await self._own(change, thread_id, metadata=metadata)

    async def settle(self, thread_id: UUID, status: Status) -> None:
        """Store what a changed state means for the thread, unless a run is at work on it."""
        change = """
            UPDATE crag_threads SET updated_at = now(),
              status = CASE WHEN status = 'busy' THEN status ELSE %(status)s END
            WHERE thread_id = %(thread)s AND owner = %(owner)s
        """
        await self._database.rows(change, thread=thread_id, owner=self.owner, status=status)

    async def _own(self, query: LiteralString, thread_id: UUID, **values: object) -> Row:
        found = await self._database.row(query, thread=thread_id, owner=self.owner, **values)
        return found or not_found("Thread")

    def fence(self, thread_id: UUID) -> Fence:
        """Return what holds for as long as the thread is there and the owner's."""
        mine = "SELECT 1 FROM crag_threads WHERE thread_id = %(thread)s AND owner = %(owner)s "
        return Fence(mine + "FOR KEY SHARE", {"thread": thread_id, "owner": self.owner})

    async def delete(self, thread_id: UUID) -> None:
        """Remove a thread with its runs and checkpoints; what works on it can write no more."""
        async with self._database.transaction() as connection:
            # This waits for whoever is writing, and the checkpoints go after the last of them.
            query = """
                DELETE FROM crag_threads WHERE thread_id = %(thread)s AND owner = %(owner)s
                RETURNING ARRAY(SELECT run_id FROM crag_runs WHERE thread_id = %(thread)s) AS runs
            """
            removed = await connection.row(query, thread=thread_id, owner=self.owner)
            if not removed:
                not_found("Thread")
            await forget_threads(connection, [thread_id])
            await connection.notify(CANCELLED, *removed["runs"])

    async def copy(self, thread_id: UUID) -> Row:
        """Copy a thread with its checkpoints, but without its runs."""
        await self._check_pace()
        new = uuid4()
        async with self._database.transaction() as connection:
            await self.fence(thread_id).hold(connection)
            for table in _TABLES:
                await connection.execute(_COPY.format(table=table), (str(new), str(thread_id)))
            query = """
                INSERT INTO crag_threads (thread_id, owner, graph_id, metadata, status)
                SELECT %(new)s, owner, graph_id, metadata,
                    CASE status WHEN 'busy' THEN 'idle' ELSE status END
                FROM crag_threads WHERE thread_id = %(thread)s RETURNING *
            """
            (made,) = await connection.rows(query, new=new, thread=thread_id)
        return made


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

"""Threads: who owns them, what state they are in, and copies of them."""

from typing import Any, LiteralString
from uuid import UUID, uuid4

from langgraph_sdk.schema import OnConflictBehavior, SortOrder, ThreadStatus
from psycopg import sql

from crag.page.keeping import MINUTE, TooFastError
from crag.server.database import CANCELLED, Connection, Database, Fence, Row, queries
from crag.server.replies import RefusedRequestError, not_found

_SQL = queries("threads")


class Threads:
    """The threads of one owner; those of others do not exist for them, and are refused with 404."""

    def __init__(self, database: Database, owner: str, most_per_minute: int | None = None) -> None:
        self._database, self.owner, self._most_per_minute = database, owner, most_per_minute

    async def create(
        self,
        thread_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        if_exists: OnConflictBehavior = "raise",
        *,
        temporary: bool = False,
    ) -> Row:
        """Make a thread; refuse an id that is taken, with 409, and too many within a minute."""
        if not temporary:
            await self._check_pace()
        made = await self._database.rows(
            _SQL["create"], thread_id=thread_id or uuid4(), owner=self.owner,
            metadata=metadata or {}, temporary=temporary,
        )  # fmt: skip
        if made:
            return made[0]
        if thread_id and if_exists == "do_nothing":
            return await self.get(thread_id)
        raise RefusedRequestError(409, f"Thread {thread_id} exists already.")

    async def _check_pace(self) -> None:
        """Refuse one more thread of a user who has made many; two at once may both be the last."""
        most = self._most_per_minute
        if not self.owner or most is None:
            return
        made = await self._database.rows(_SQL["recent"], owner=self.owner, minute=MINUTE, most=most)
        if len(made) >= most:
            raise RefusedRequestError(429, str(TooFastError(most)), MINUTE)

    async def get(self, thread_id: UUID) -> Row:
        """Return a thread."""
        return await self._own(_SQL["get"], thread_id)

    async def search(self, sort_by: str, sort_order: SortOrder, **sent: object) -> list[Row]:
        """Return threads in an order; `sent` is what else a client sends to search for them."""
        by, order = sql.Identifier(sort_by), sql.SQL(sort_order)
        query = sql.SQL(_SQL["search"]).format(by=by, order=order)
        return await self._database.rows(query, owner=self.owner, **sent)

    async def update(self, thread_id: UUID, metadata: dict[str, Any]) -> Row:
        """Add to the metadata of a thread."""
        return await self._own(_SQL["update"], thread_id, metadata=metadata)

    async def settle(self, thread_id: UUID, status: ThreadStatus) -> None:
        """Store what a changed state means for the thread, unless a run is at work on it."""
        await self._own(_SQL["settle"], thread_id, status=status)

    async def _own(self, query: LiteralString, thread_id: UUID, **values: object) -> Row:
        found = await self._database.rows(query, thread_id=thread_id, owner=self.owner, **values)
        return found[0] if found else not_found("Thread")

    def fence(self, thread_id: UUID) -> Fence:
        """Return what holds for as long as the thread is there and the owner's."""
        return _SQL["hold"], {"thread_id": thread_id, "owner": self.owner}

    async def delete(self, thread_id: UUID) -> None:
        """Remove a thread with its runs and checkpoints; what works on it can write no more."""
        async with self._database.transaction() as connection:
            removed = await connection.rows(_SQL["delete"], thread_id=thread_id, owner=self.owner)
            if not removed:
                not_found("Thread")
            await forget(connection, [thread_id])
            await connection.notify(CANCELLED, *removed[0]["runs"])

    async def copy(self, thread_id: UUID) -> Row:
        """Copy a thread with its checkpoints, but without its runs."""
        await self._check_pace()
        async with self._database.transaction() as connection:
            await connection.hold(self.fence(thread_id))
            (made,) = await connection.rows(_SQL["copy"], new=uuid4(), thread_id=thread_id)
        return made


async def forget(connection: Connection, threads: list[UUID]) -> None:
    """Remove the checkpoints of threads."""
    await connection.rows(_SQL["forget"], threads=[str(thread_id) for thread_id in threads])

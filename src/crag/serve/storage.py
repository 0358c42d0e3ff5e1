"""Where conversations are kept: LangGraph's checkpointer and store, on SQLite or PostgreSQL."""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from crag.extras import require

_CONNECTIONS, _RUNS = 8, 64
"""Of one process to PostgreSQL: for checkpoints, and for questions that are being answered."""


class Storage(NamedTuple):
    """What keeps the conversations of all users."""

    saver: BaseCheckpointSaver[Any]
    """The states of each thread."""
    store: BaseStore
    """The list of each user's threads."""
    turn: Callable[[str], AbstractAsyncContextManager[object]]
    """Lets one process at a time answer on a thread."""


class Place(NamedTuple):
    """Where a thread of a user is kept; nobody else's request can name it."""

    owner: str
    thread: str

    @property
    def key(self) -> str:
        """The id that the checkpointer knows."""
        return f"{self.owner}/{self.thread}"

    @property
    def listed(self) -> tuple[str, str]:
        """The namespace of the list of this user's threads."""
        return ("threads", self.owner)

    def config(self, checkpoint: str | None = None) -> RunnableConfig:
        """Return the configuration of a run that goes on from a checkpoint, or from the latest."""
        found = {"thread_id": self.key} | ({"checkpoint_id": checkpoint} if checkpoint else {})
        return {"configurable": found}


def place_of(user: str, thread: str = "") -> Place:
    """Return the place of a user's thread: the one function that says whose a thread is."""
    return Place(hashlib.sha256(user.encode()).hexdigest()[:32], thread)


@asynccontextmanager
async def storage_in(database: str) -> AsyncIterator[Storage]:
    """Open a PostgreSQL database by its address, or an SQLite file by its path."""
    opened = _postgres(database) if "://" in database else _sqlite(Path(database))
    async with opened as storage:
        yield storage


@asynccontextmanager
async def _sqlite(file: Path) -> AsyncIterator[Storage]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    file.parent.mkdir(parents=True, exist_ok=True)
    async with (
        AsyncSqliteSaver.from_conn_string(str(file)) as saver,
        AsyncSqliteStore.from_conn_string(str(file)) as store,
    ):
        await saver.setup()
        await store.setup()
        yield Storage(saver, store, lambda _: nullcontext())


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[Storage]:
    require("serve", "conversations in PostgreSQL", "psycopg_pool")
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres.aio import AsyncPostgresStore
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    def pool(most: int) -> Any:
        options = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}
        return AsyncConnectionPool(
            url, min_size=1, max_size=most, kwargs=options, open=False,
            check=AsyncConnectionPool.check_connection,
        )  # fmt: skip

    # Pools of their own: questions that hold all connections could not save their answers.
    async with pool(_CONNECTIONS) as connections, pool(_RUNS) as locks:

        @asynccontextmanager
        async def turn(key: str) -> AsyncIterator[None]:
            # The lock ends with the transaction, and that with the process, however it ends.
            async with locks.connection(timeout=600) as connection, connection.transaction():
                await connection.execute(
                    "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (key,)
                )
                yield

        saver, store = AsyncPostgresSaver(connections), AsyncPostgresStore(connections)
        async with turn("setup"):  # Of two processes that begin together, one makes the tables.
            await saver.setup()
            await store.setup()
        yield Storage(saver, store, turn)

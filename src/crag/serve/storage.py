"""Where conversations are kept: LangGraph's checkpointer and store, on SQLite or PostgreSQL."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from crag.errors import SettingsError
from crag.plain import first_line
from crag.runtime.environment import Environment
from crag.serve.settings import ServeSettings

_SAVING, _ANSWERING = 8, 64
"""Connections of one process to PostgreSQL. Of two kinds: questions that held all connections
could not save their answers."""
_LOCK = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0)) AS taken"
_UNLOCK = "SELECT pg_advisory_unlock_all()"


class Storage(NamedTuple):
    """What keeps the conversations of all users."""

    saver: BaseCheckpointSaver[Any]
    """The states of each thread."""
    store: BaseStore
    """The list of each user's threads, to be written."""
    listed: BaseStore
    """The same, to be read: what SQLite reads in one transaction with a write makes that fail where
    another connection has written meanwhile."""
    turn: Callable[[str], AbstractAsyncContextManager[object]]
    """Lets one process at a time answer on a thread."""


def database_of(environment: Environment, settings: ServeSettings) -> str:
    """Return where the conversations are: as set, or in an SQLite file beside the index."""
    return settings.database or f"{environment.beside}-conversations.sqlite"


def check_database(database: str) -> None:
    """Open a database once, since a server tells of one that it cannot open by a trace.

    Raises:
        SettingsError: it cannot be used.
    """
    try:
        if "://" in database:
            import_module("psycopg").connect(database, connect_timeout=20).close()
        else:
            Path(database).parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(database)) as file:
                file.execute("BEGIN IMMEDIATE")
    except Exception as error:  # Of whatever kind a driver raises.
        problem = f"it cannot be opened as PostgreSQL or as an SQLite file ({first_line(error)})"
        raise SettingsError("CRAG_SERVE_DATABASE", database, problem) from error


def storage_in(database: str) -> AbstractAsyncContextManager[Storage]:
    """Open a PostgreSQL database by its address, or an SQLite file by its path."""
    return (_postgres if "://" in database else _sqlite)(database)


@asynccontextmanager
async def _sqlite(file: str) -> AsyncIterator[Storage]:
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    Path(file).parent.mkdir(parents=True, exist_ok=True)
    async with (
        AsyncSqliteSaver.from_conn_string(file) as saver,
        AsyncSqliteStore.from_conn_string(file) as store,
        AsyncSqliteStore.from_conn_string(file) as listed,
    ):
        await saver.setup()
        await store.setup()
        await listed.setup()
        locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        yield Storage(saver, store, listed, lambda key: locks.setdefault(key, asyncio.Lock()))


@asynccontextmanager
async def _postgres(url: str) -> AsyncIterator[Storage]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres.aio import AsyncPostgresStore
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    options = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}

    def pool(most: int, **more: Any) -> Any:
        check = AsyncConnectionPool.check_connection
        return AsyncConnectionPool(url, min_size=1, max_size=most, kwargs=options, open=False,
                                   check=check, **more)  # fmt: skip

    # The pool unlocks what comes back to it: a run that is cancelled does not know whether it had
    # the lock, and could be cancelled while it unlocks.
    unlocked = pool(_ANSWERING, reset=lambda connection: connection.execute(_UNLOCK))
    async with pool(_SAVING) as connections, unlocked as locks:

        @asynccontextmanager
        async def turn(key: str) -> AsyncIterator[None]:
            # It ends with the connection, and that with the process, however it ends. It is asked
            # for again and again, outside of a transaction: both keep no index from being made.
            async with locks.connection(timeout=600) as connection:
                taken = False
                while not taken:
                    cursor = await connection.execute(_LOCK, (key,))
                    if not (taken := (await cursor.fetchone())["taken"]):
                        await asyncio.sleep(0.05)
                yield

        saver, store = AsyncPostgresSaver(connections), AsyncPostgresStore(connections)
        async with turn("setup"):  # Of processes that begin together, one makes the tables.
            await saver.setup()
            await store.setup()
        yield Storage(saver, store, store, turn)

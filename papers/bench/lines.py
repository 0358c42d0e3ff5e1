"""Files of JSON Lines that a killed run can be resumed from."""

import json
import os
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Generic, Literal, Self, TypeVar

from crag.errors import DataError

Status = Literal["answered", "abstained", "failed"]
Kept = TypeVar("Kept", bound=Mapping[str, Any])


class Lines(Generic[Kept]):
    """Objects by their `key`, one per line, each written to disk before the next one starts.

    An unfinished last line of a killed run is removed when the file is opened. Of objects with the
    same key the last one counts. Each has at least the fields `required`; `what` names one.

    Raises:
        DataError: a line is no such object, or another run has the file open; it is then not
            changed.
    """

    def __init__(self, path: Path, required: Collection[str], what: str) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._file = path.open("ab")
        try:
            require_alone(path, self._file)
            self.rows: dict[str, Kept] = _read(path, required, what)
            """By key, in the order in which they were first written."""
        except BaseException:
            self._file.close()
            raise

    def append(self, row: Kept) -> None:
        """Write one row and wait until it is on disk."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        with self._lock:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
            self.rows[row["key"]] = row

    def __enter__(self) -> Self:
        """Use the file until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._file.close()


def require_alone(path: Path, file: IO[Any]) -> None:
    """Lock the open file at `path` until it is closed, or the process ends.

    Two runs would ask every question twice, and the later one would take the line that the other
    one is writing for the rest of a killed run, and cut it off. The file itself is locked: a lock
    of filelock's is a file of its own, which would stay beside somebody's answers.

    Raises:
        DataError: another run has locked it.
    """
    if sys.platform == "win32":
        return
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        problem = "another run is writing to it. Wait until it has finished, or stop it"
        raise DataError(path, problem) from None
    except OSError:  # A file system without locks.
        return


def _read(path: Path, required: Collection[str], what: str) -> dict[str, Any]:
    if not path.exists():
        return {}
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    rows = dict(_rows(path, whole, required, what))
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))
    return rows


def _rows(
    path: Path, content: bytes, required: Collection[str], what: str
) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            row: Any = json.loads(line)
        except ValueError as error:
            raise DataError(path, f"is not JSON ({error}); use another --output", number) from None
        if not isinstance(row, Mapping) or set(required) - row.keys():
            raise DataError(path, f"is not {what}; use another --output", number)
        yield str(row["key"]), row

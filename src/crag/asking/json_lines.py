"""Files of JSON Lines that a killed run can be resumed from."""

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from crag.errors import DataError

Kept = TypeVar("Kept", bound=Mapping[str, Any])


class JsonLines(Generic[Kept]):
    """Objects by their field `key`, one per line, each on disk before the next one starts.

    An unfinished last line of a killed run is removed when the file is opened. Of objects with the
    same key the last one counts. Each has at least the fields `required`; `what` names one.

    Raises:
        DataError: a line is no such object; the file is then not changed.
    """

    def __init__(self, path: Path, required: Collection[str], what: str, key: str = "key") -> None:
        self.path, self.key = path, key
        self.rows: dict[str, Kept] = {}
        """By key, in the order in which they were first written."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict) or not row.keys() >= set(required):
                self._file.close()
                raise DataError(path, f"is not {what}; use another --output", number)
            self.rows[str(row[key])] = row  # type: ignore[assignment]
        self._file.truncate(len(whole))

    def append(self, row: Kept) -> None:
        """Write one row and wait until it is on disk."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
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

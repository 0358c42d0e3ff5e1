"""Read downloaded files, and keep a record of it: rows that were skipped, and repairs."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from crag.errors import DataError
from crag.papers.bench.examples import Example, Loaded, Refused

JsonRow = Mapping[str, Any]
_NAMED = 5


class UnusableRowError(ValueError):
    """One row cannot be used; the others are not affected."""


class ReadLog:
    """The record of reading one file; rows are counted from 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """The file, as messages name it."""
        self.unit = "item" if path.suffix.lower() == ".json" else "line"
        """The unit of the numbers."""
        self.refused: list[Refused] = []
        """Rows skipped so far."""
        self._repairs: dict[str, list[int]] = {}

    def refuse(self, number: int, reason: str) -> None:
        """Skip a row, with the reason."""
        self.refused.append(Refused(f"{self.path.name}, {self.unit} {number}", reason))

    def repair(self, what: str, number: int = 0) -> None:
        """Count a repair or oddity `what` in row `number`; 0 means the whole file."""
        self._repairs.setdefault(what, []).append(number)

    @property
    def notes(self) -> list[str]:
        """Each repair with its count and the first rows concerned."""
        return [self._note(what, numbers) for what, numbers in self._repairs.items()]

    def _note(self, what: str, numbers: list[int]) -> str:
        if numbers == [0]:
            return f"{self.path.name}: {what}"
        named = ", ".join(map(str, numbers[:_NAMED])) + (" …" if len(numbers) > _NAMED else "")
        return f"{self.path.name}: {what}: {len(numbers)} ({self.unit} {named})"

    def finish(self, examples: list[Example]) -> Loaded:
        """Return what was read; raise if no row can be used."""
        if not examples:
            reasons = "; ".join(f"{one.place}: {one.reason}" for one in self.refused[:3])
            problem = f"no row of it can be used; {reasons}" if reasons else "it is empty"
            raise DataError(self.path, problem)
        return Loaded(examples, self.refused, self.notes)


def read_lines(path: Path) -> list[str]:
    """Return the lines, split at line feeds only; texts may contain other separators.

    Raises:
        DataError: there is no such file, or it is not UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(path, f"it is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise DataError(path, str(error.strerror)) from error
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def json_rows(path: Path, log: ReadLog) -> Iterator[tuple[int, JsonRow]]:
    """Yield the objects of a ``.json`` file by item, of any other by line, with their numbers.

    The list of a ``.json`` file may stand under ``data``. Broken lines are skipped and recorded; a
    truncated last line usually means an interrupted download.

    Raises:
        DataError: a ``.json`` file is broken, since it cannot be read in part, or not a list.
    """
    listed = _items(path) if log.unit == "item" else _lines(path, log)
    for number, row in listed:
        if isinstance(row, dict):
            yield number, row
        else:
            log.refuse(number, f"it is {type(row).__name__}, not one JSON object")


def _lines(path: Path, log: ReadLog) -> Iterator[tuple[int, Any]]:
    lines = read_lines(path)
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                yield number, json.loads(line)
        except json.JSONDecodeError as error:
            last = "; the file ends here: download it again" if number == len(lines) else ""
            log.refuse(number, f"it is not JSON ({error.msg}){last}")


def _items(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        content = json.loads("\n".join(read_lines(path)))
    except json.JSONDecodeError as error:
        problem = f"this is not JSON ({error.msg}); if it is truncated here, download it again"
        raise DataError(path, problem, error.lineno) from error
    items = content.get("data") if isinstance(content, dict) else content
    if not isinstance(items, list):
        raise DataError(path, "it must contain a list of items, alone or under 'data'")
    return enumerate(items, start=1)

"""Collect the results of reading one file: examples, skipped rows and repairs."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
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

    def __init__(self, path: Path, unit: str = "line") -> None:
        self.path = path
        """The file, as messages name it."""
        self.unit = unit
        """The unit of the numbers, such as line or item."""
        self.refused: list[Refused] = []
        """Rows skipped so far."""
        self._repairs: dict[str, list[int]] = {}

    def refuse(self, number: int, reason: str, identity: str = "") -> None:
        """Skip a row, with the reason."""
        self.refused.append(Refused(f"{self.path.name}, {self.unit} {number}", reason, identity))

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


def collect(
    reading: ReadLog,
    rows: Iterable[tuple[int, JsonRow]],
    build: Callable[[JsonRow, int, ReadLog], Example],
) -> Loaded:
    """Build an example from each row; skip unusable rows and duplicates.

    Raises:
        DataError: no row can be used.
    """
    kept: dict[str, Example] = {}
    contents: dict[str, str] = {}
    for number, row in rows:
        try:
            example = build(row, number, reading)
            _check_new(example, kept, contents)
        except UnusableRowError as error:
            reading.refuse(number, str(error), str(row.get("id") or ""))
            continue
        kept[example.id] = example
        contents[_content(example)] = example.id
    return finish(reading, list(kept.values()))


def finish(reading: ReadLog, examples: list[Example]) -> Loaded:
    """Return what was read; raise if no row can be used."""
    if not examples:
        reasons = [f"{refused.place}: {refused.reason}" for refused in reading.refused[:3]]
        problem = f"no row of it can be used; {'; '.join(reasons)}" if reasons else "it is empty"
        raise DataError(reading.path, problem)
    return Loaded(examples, reading.refused, reading.notes)


def _check_new(example: Example, kept: Mapping[str, Example], contents: Mapping[str, str]) -> None:
    known = contents.get(_content(example))
    if known is not None:
        message = f"it repeats the row with id {known!r}"
        raise UnusableRowError(message)
    if example.id in kept:
        message = f"the id {example.id!r} was already used by another row"
        raise UnusableRowError(message)


def _content(example: Example) -> str:
    """Return a hash of everything but the id, to find rows with the same content.

    PopQA has identical questions about namesakes, so the question alone is not enough.
    """
    plain = example._replace(id="", documents=())
    texts = [(one.metadata.get("title"), one.page_content) for one in example.documents]
    return hashlib.sha256(repr((plain, texts)).encode()).hexdigest()

"""Read downloaded files, and keep a record of it: rows that were skipped, and repairs."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crag.errors import DataError
from crag.papers.bench.examples import Example, Loaded, Refused

JsonRow = Mapping[str, Any]
_NAMED = 5
_MARK = "\ufeff"


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

    def finish(self, examples: list[Example]) -> Loaded:
        """Return what was read; raise if no row can be used."""
        if not examples:
            reasons = "; ".join(f"{one.place}: {one.reason}" for one in self.refused[:3])
            problem = f"no row of it can be used; {reasons}" if reasons else "it is empty"
            raise DataError(self.path, problem)
        return Loaded(examples, self.refused, self.notes)


def collect(
    log: ReadLog,
    rows: Iterable[tuple[int, JsonRow]],
    build: Callable[[JsonRow, int, ReadLog], Example],
) -> Loaded:
    """Build an example from each row; skip unusable rows and duplicates.

    PopQA has identical questions about namesakes, so only rows that are alike in everything but the
    id count as duplicates.

    Raises:
        DataError: no row can be used.
    """
    kept: dict[str, Example] = {}
    contents: dict[str, str] = {}
    for number, row in rows:
        try:
            example = build(row, number, log)
            texts = [(one.metadata.get("title"), one.page_content) for one in example.documents]
            plain = repr((example._replace(id="", documents=()), texts))
            content = hashlib.sha256(plain.encode()).hexdigest()
            if content in contents:
                raise UnusableRowError(f"it repeats the row with id {contents[content]!r}")  # noqa: TRY301
            if example.id in kept:
                raise UnusableRowError(f"the id {example.id!r} was already used by another row")  # noqa: TRY301
        except UnusableRowError as error:
            log.refuse(number, str(error), str(row.get("id") or ""))
            continue
        kept[example.id], contents[content] = example, example.id
    return log.finish(list(kept.values()))


def read_text(path: Path, log: ReadLog) -> str:
    """Return the text with normalised line ends and no byte-order mark, noting both.

    Raises:
        DataError: there is no such file, or it is not UTF-8.
    """
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise DataError(path, f"it is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise DataError(path, str(error.strerror)) from error
    if text.startswith(_MARK):
        log.repair("removed the byte-order mark")
        text = text.removeprefix(_MARK)
    if "\r\n" in text:
        log.repair("removed Windows line ends")
        text = text.replace("\r\n", "\n")
    return text


def read_lines(path: Path, log: ReadLog) -> list[str]:
    """Return the lines, split at line feeds only; texts may contain other separators."""
    lines = read_text(path, log).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def json_rows(path: Path, log: ReadLog) -> Iterator[tuple[int, JsonRow]]:
    """Yield the objects of a ``.json`` file by item, of any other by line, with their numbers.

    The list of a ``.json`` file may stand under ``data``. Broken lines are skipped and recorded; a
    truncated last line usually means an interrupted download.

    Raises:
        DataError: a ``.json`` file is broken, since it cannot be read in part, or not a list.
    """
    listed = _items(path, log) if log.unit == "item" else _lines(path, log)
    for number, row in listed:
        if isinstance(row, dict):
            yield number, row
        else:
            log.refuse(number, f"it is {type(row).__name__}, not one JSON object")


def _lines(path: Path, log: ReadLog) -> Iterator[tuple[int, Any]]:
    lines = read_lines(path, log)
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip():
                yield number, json.loads(line)
        except json.JSONDecodeError as error:
            last = "; the file ends here: download it again" if number == len(lines) else ""
            log.refuse(number, f"it is not JSON ({error.msg}){last}")


def _items(path: Path, log: ReadLog) -> Iterator[tuple[int, Any]]:
    try:
        content = json.loads(read_text(path, log))
    except json.JSONDecodeError as error:
        problem = f"this is not JSON ({error.msg}); if it is truncated here, download it again"
        raise DataError(path, problem, error.lineno) from error
    items = content.get("data") if isinstance(content, dict) else content
    if not isinstance(items, list):
        raise DataError(path, "it must contain a list of items, alone or under 'data'")
    return enumerate(items, start=1)

"""Loaders of files with many documents: JSONL and CSV, read row by row, and JSON."""

import codecs
import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

from crag.documents.sources import HARD_BREAK, Loaded, SourceText, Unit, Unusable, record_source
from crag.documents.texts import encoding_of, read_bytes, reading
from crag.errors import SourceError

TEXT_FIELDS = ("text", "content", "page_content")
NO_RECORDS = "no list of objects with a text"
_ID = re.compile(rb'"id"\s*:\s*(?:"([^"\\]+)"|(\d+))')
_DELIMITERS = ",;\t|"
_BLOCK = 1 << 20
_LONGEST_CELL = 4_000_000
"""Characters; a longer one is the rest of a file behind a quotation mark that nothing closes."""
_LIMITED = Lock()


def load_jsonl(path: Path) -> Iterator[Loaded]:
    """Load one document per line: `text` (or `content`, `page_content`), `title`, `url`, `id`.

    Invalid lines are skipped and reported with their number.

    Raises:
        SourceError: the file cannot be read.
    """
    names = _Names(path, "record")
    with reading(path), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _json_record(line, number, names)


def load_json(path: Path) -> Iterator[Loaded]:
    """Load one document per object of a list, with the fields of a line of JSONL.

    A file with anything else, and no such object, holds settings or the like: no loader reads it.

    Raises:
        SourceError: the file cannot be read.
    """
    names, content = _Names(path, "record"), read_bytes(path)
    try:
        records = json.loads(content)
    except (ValueError, RecursionError):
        is_list = content.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
        yield Unusable(str(path), "not JSON" if is_list else NO_RECORDS, foreign=not is_list)
        return
    has_text = isinstance(records, list) and any(_text_of(one) is not None for one in records)
    if not has_text and records != []:
        yield Unusable(str(path), NO_RECORDS, foreign=True)
        return
    for number, record in enumerate(records, start=1):
        yield _object_record(record, number, f"record {number}", names)


def load_csv(path: Path) -> Iterator[Loaded]:
    """Load one document per row below the header; the first one is row 2.

    With a column for the text (`text`, `content` or `page_content`), the columns `title`, `url`
    and `id` are used as well; otherwise the text of a row is one ``column: value`` line for each
    column. The delimiter is a comma, semicolon, tab or bar.

    Raises:
        SourceError: the file cannot be read or parsed, or has a cell of over 4,000,000 characters.
    """
    names = _Names(path, "row")
    encoding = encoding_of(path)
    try:
        with reading(path), path.open(encoding=encoding, errors="replace", newline="") as file:
            header = file.readline()
            file.seek(0)
            delimiter = max(_DELIMITERS, key=header.count)
            for number, row in enumerate(_csv_rows(file, delimiter), start=2):
                yield _csv_record(row, number, names)
    except csv.Error as error:
        raise SourceError(str(path), f"not a CSV file: {error}") from error


def _csv_rows(file: TextIO, delimiter: str) -> Iterator[Mapping[str | None, Any]]:
    """Yield rows with cells longer than the 131,072 characters that Python allows by default.

    The limit is one for the whole process, so it is another only while a row is read.
    """
    rows = csv.DictReader(file, delimiter=delimiter)
    while True:
        with _LIMITED:
            before = csv.field_size_limit(_LONGEST_CELL)
            try:
                row = next(rows, None)
            finally:
                csv.field_size_limit(before)
        if row is None:
            return
        yield row


def count_lines(path: Path) -> int:
    """Count lines, an estimate of the documents in a file of records."""
    try:
        with path.open("rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(_BLOCK), b""))
    except OSError:
        return 1


class _Names:
    """Name the records of one file: by id, or by number if the id is missing or taken."""

    def __init__(self, path: Path, unit: Unit) -> None:
        self._path = path
        self.unit: Unit = unit
        self._taken: set[str] = set()

    def of(self, key: object, number: int) -> str:
        wanted = str(key).strip() if isinstance(key, str | int) else ""
        name = record_source(self._path, wanted or str(number))
        while name in self._taken:  # By the same id, or by one that looks like this.
            name += f"@{number}"
        self._taken.add(name)
        return name


def _json_record(line: bytes, number: int, names: _Names) -> Loaded:
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        match = _ID.search(line)
        key = (match[1] or match[2]).decode(errors="replace") if match else ""
        return Unusable(names.of(key, number), f"line {number}: not JSON in UTF-8")
    return _object_record(record, number, f"line {number}", names)


def _object_record(record: Any, number: int, place: str, names: _Names) -> Loaded:
    if not isinstance(record, dict):
        return Unusable(names.of("", number), f"{place}: not a JSON object")
    source, text = names.of(record.get("id"), number), _text_of(record)
    if not isinstance(text, str):
        wanted = ", ".join(f"{name!r}" for name in TEXT_FIELDS)
        return Unusable(source, f"{place}: no text in it (fields {wanted})")
    if not text.strip():
        return Unusable(source, f"{place}: empty", empty=True)
    return _record(record, text, source, number, names.unit)


def _text_of(record: Any) -> object:
    fields = record if isinstance(record, dict) else {}
    return next((fields[name] for name in TEXT_FIELDS if fields.get(name) is not None), None)


def _csv_record(row: Mapping[str | None, Any], number: int, names: _Names) -> Loaded:
    cells = {
        name.strip().lower(): value or ""
        for name, value in row.items()
        if name is not None and not isinstance(value, list)
    }
    field = next((name for name in TEXT_FIELDS if name in cells), None)
    if field is None:
        source = names.of("", number)
        shown = {name.strip(): row[name] for name in row if name and row[name]}
        text = HARD_BREAK.join(f"{name}: {value}" for name, value in shown.items())
        cells = {}
    else:
        source = names.of(cells.get("id"), number)
        text = cells[field]
    if not text.strip():
        return Unusable(source, f"row {number}: empty", empty=True)
    return _record(cells, text, source, number, names.unit)


def _record(
    fields: Mapping[str, object], text: str, source: str, number: int, unit: Unit
) -> SourceText:
    title, url = (" ".join(str(fields.get(name) or "").split()) for name in ("title", "url"))
    return SourceText(source=source, title=title, text=text, url=url, unit=unit, number=number)

"""Read text, lines and JSON from downloaded files: byte-order marks, line ends, truncation."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from crag.errors import DataError
from crag.papers.loading.read_log import JsonRow, ReadLog

_MARK = "\ufeff"


def read_text(path: Path, reading: ReadLog) -> str:
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
        reading.repair("removed the byte-order mark")
        text = text.removeprefix(_MARK)
    if "\r\n" in text:
        reading.repair("removed Windows line ends")
        text = text.replace("\r\n", "\n")
    return text


def read_lines(path: Path, reading: ReadLog) -> list[str]:
    """Return the lines, split at line feeds only; texts may contain other separators."""
    lines = read_text(path, reading).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def json_lines(path: Path, reading: ReadLog) -> Iterator[tuple[int, JsonRow]]:
    """Yield the number and object of each line; skip and record broken lines.

    A truncated last line usually means an interrupted download.
    """
    lines = read_lines(path, reading)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            last = "; the file ends here: download it again" if number == len(lines) else ""
            reading.refuse(number, f"it is not JSON ({error.msg}){last}")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            reading.refuse(number, f"it is {type(row).__name__}, not one JSON object")


def json_items(path: Path, reading: ReadLog) -> Iterator[tuple[int, JsonRow]]:
    """Yield the number and object of each item of a JSON list, alone or under ``data``.

    Raises:
        DataError: the file is broken (one JSON document cannot be read in part) or not a list.
    """
    reading.unit = "item"
    for number, row in enumerate(_items(path, reading), start=1):
        if isinstance(row, dict):
            yield number, row
        else:
            reading.refuse(number, f"it is {type(row).__name__}, not a JSON object")


def _items(path: Path, reading: ReadLog) -> list[Any]:
    try:
        content = json.loads(read_text(path, reading))
    except json.JSONDecodeError as error:
        problem = f"this is not JSON ({error.msg}); if it is truncated here, download it again"
        raise DataError(path, problem, error.lineno) from error
    items = content.get("data") if isinstance(content, dict) else content
    if not isinstance(items, list):
        raise DataError(path, "it must contain a list of items, alone or under 'data'")
    return items


def table_rows(path: Path, reading: ReadLog) -> Iterator[tuple[int, JsonRow]]:
    """Yield the line number and cells of each row of a tab-separated table with a header."""
    text = read_text(path, reading)
    table = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
    for row in table:
        if None in row or None in row.values():
            reading.refuse(table.line_num, "it does not have as many cells as the header")
        else:
            yield table.line_num, row


def json_rows(path: Path, reading: ReadLog) -> Iterator[tuple[int, JsonRow]]:
    """Yield rows of a ``.json`` file by item, of any other by line."""
    return (json_items if path.suffix.lower() == ".json" else json_lines)(path, reading)

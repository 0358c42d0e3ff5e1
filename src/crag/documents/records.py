"""Loaders of files with many documents: JSONL, JSON and CSV."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from statistics import median
from typing import Any

from crag.documents.sources import Loaded, SourceText, Unit, Unusable, read_text
from crag.errors import SourceError
from crag.text.blocks import HARD_BREAK, Block, escaped
from crag.text.encodings import storable
from crag.text.tables import groups, with_group

TEXT_FIELDS = ("text", "content", "page_content")
_SEPARATOR = re.compile(r"\ufeff?\"?sep=(.)\"?\s*$", re.IGNORECASE)
"""A first line that tells spreadsheet programs the delimiter."""
_DELIMITERS = ",;\t|"
_SAMPLE = 50
"""Rows that show how a file is written."""
_DATUM = re.compile(r"(?=\D*\d)[-+]?[\d.,:/\s%€$-]+|[^\s@]+@[^\s@.]+\.\S+|https?://\S+")
_YEAR = re.compile(r"(?:19|20)\d\d")
_FULL = 0.6
"""Share of the usual number of filled cells that a header has at least."""
_LONGEST_CELL = 4_000_000
"""Characters; a longer one is the rest of a file behind a quotation mark that nothing closes."""
csv.field_size_limit(_LONGEST_CELL)  # For the whole process, whose default is 131,072.


def load_jsonl(path: Path) -> Iterator[Loaded]:
    """Load one document per line: `text` (or `content`, `page_content`), `title`, `url`, `id`.

    Other fields are lines of it, ``name: value``. Invalid lines are skipped and reported with their
    number.
    """
    records = _Records(path, "record")
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if line.strip():
            try:
                record = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError):
                yield records.unusable(number, "not JSON in UTF-8")
            else:
                yield records.of_json(record, number)


def load_json(path: Path) -> Iterator[Loaded]:
    """Load one document per object of a list, with the fields of a line of JSONL.

    Of an object, such as an export, it takes the lists and objects of objects that it holds, and
    what stands beside them.

    Raises:
        ValueError: the file is no JSON.
        SourceError: it is neither a list nor an object.
    """
    records = _Records(path, "record")
    found = json.loads(path.read_bytes())
    if isinstance(found, dict):
        lists = {name: _objects(name, value) for name, value in found.items()}
        beside = {name: value for name, value in found.items() if not lists[name]}
        found = [*([beside] if beside else []), *chain.from_iterable(lists.values())]
    if not isinstance(found, list):
        raise SourceError(str(path), "no list of objects")
    for number, record in enumerate(found, start=1):
        yield records.of_json(record, number)


def load_csv(path: Path) -> Iterator[Loaded]:
    """Load one document per row, whose lines are ``column: value``; rows are counted from 1.

    The delimiter is a comma, semicolon, tab or bar, or what a first line ``sep=`` says. Titles and
    comments above the header are a document of their own. Cells of columns of one name stand on one
    line, and those of no name on a line without one. Where one label is meant for several rows,
    each has it. A column `text`, `content` or `page_content` is the text of a row, before the
    others; `title`, `url` and `id` say what they say.

    Raises:
        SourceError: the file cannot be parsed, or has a cell of over 4,000,000 characters.
    """
    records = _Records(path, "row")
    try:
        rows = enumerate(_rows(read_text(path)), start=1)
        sample = list(islice(rows, _SAMPLE))
        above, header = _header([row for _, row in sample])
        if above:
            text = "\n".join(" ".join(filter(None, row)) for _, row in sample[:above])
            yield records.document([("text", text)], 1)
        before, is_apart = list[str](), False
        below = sample[above + bool(header) :]
        columns = groups([row for _, row in below if any(row)])
        told = chain(below, rows, [(0, list[str]())])
        for (number, row), (_, after) in pairwise(told):
            if is_apart and _begins_table(before, row, after):
                header = row
            elif any(row):
                before = with_group(row, before, columns)
                labels = [*header, *[""] * (len(row) - len(header))]
                yield records.document(zip(labels, before, strict=False), number)
            is_apart = not any(row)
    except csv.Error as error:
        raise SourceError(str(path), f"not a CSV file: {error}") from error


class _Records:
    """Makes the documents of one file, named by id, or by number if the id is missing or taken."""

    def __init__(self, path: Path, unit: Unit) -> None:
        self._path = path
        self._unit: Unit = unit
        self._taken: set[str] = set()

    def unusable(self, number: int, problem: str, key: str = "") -> Unusable:
        """Return a record that cannot be read, or is empty."""
        place = f"{self._unit} {number}: {problem}"
        return Unusable(self._source(key, number), place, empty=problem == "empty")

    def of_json(self, record: Any, number: int) -> Loaded:
        """Return a record of JSON."""
        if not isinstance(record, dict):
            return self.unusable(number, "not a JSON object")
        return self.document(((name, _written(value)) for name, value in record.items()), number)

    def document(self, fields: Iterable[tuple[str, str]], number: int) -> Loaded:
        """Return a record: its text first, and its other fields as lines."""
        values: dict[str, list[str]] = {}
        for name, value in fields:
            if value:
                values.setdefault(name, []).append(value)
        by_name = {name.strip().lower(): name for name in reversed(values)}
        text = next((by_name[name] for name in TEXT_FIELDS if name in by_name), None)
        texts = [] if text is None else values.pop(text)
        key = title = url = ""
        if text is not None or self._unit == "record":
            described = (values.get(by_name.get(name, ""), [""]) for name in ("id", "title", "url"))
            key, title, url = (" ".join(held.pop(0).split()) for held in described)
        lines = [
            f"{name}: {'; '.join(held)}" if name else "; ".join(held)
            for name, held in values.items()
            if held
        ]
        blocks = _blocks([*texts, "\n".join(" ".join(line.split()) for line in lines)], number)
        if not blocks:
            return self.unusable(number, "empty", key)
        return SourceText(
            source=self._source(key, number), title=title, blocks=blocks, url=url,
            unit=self._unit, number=number,
        )  # fmt: skip

    def _source(self, key: str, number: int) -> str:
        key = storable(key or str(number)).replace("#", "%23")
        name = f"{self._path}#{key}"
        while name in self._taken:  # By the same id, or by one that looks like this.
            name += f"@{number}"
        self._taken.add(name)
        return name


def _objects(name: str, value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; of several in an object each with its name there, first."""
    held = list(value.values()) if isinstance(value, dict) and len(value) > 1 else value
    if not isinstance(held, list) or not all(isinstance(one, dict) for one in held):
        return []
    return [{name: key, **value[key]} for key in value] if isinstance(value, dict) else held


def _written(value: object) -> str:
    """Write a value of JSON, a text as it is."""
    match value:
        case None:
            return ""
        case str():
            return value.strip()
        case list():
            return ", ".join(filter(None, map(_written, value)))
        case dict():
            return ", ".join(f"{name}: {text}" for name in value if (text := _written(value[name])))
        case _:
            return json.dumps(value)


def _rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row, without white space around them."""
    file = io.StringIO(text)
    if told := _SEPARATOR.match(file.readline()):
        delimiter = told[1]
    else:
        file.seek(0)
        sample = list(islice(file, _SAMPLE))
        file.seek(0)
        delimiter = max(_DELIMITERS, key=lambda one: _most_of_a_width(sample, one))
    is_open = delimiter == "\t" and text.count('"') % 2  # Marks of inches, or the like.
    for row in csv.reader(
        file, delimiter=delimiter, skipinitialspace=True,
        quoting=csv.QUOTE_NONE if is_open else csv.QUOTE_MINIMAL,
    ):  # fmt: skip
        yield [cell.strip() for cell in row]


def _most_of_a_width(lines: Sequence[str], delimiter: str) -> int:
    """Return how many rows have the commonest number of cells, of those that have several."""
    widths = Counter(map(len, csv.reader(lines, delimiter=delimiter, skipinitialspace=True)))
    return max((count for width, count in widths.items() if width > 1), default=0)


def _header(rows: Sequence[Sequence[str]]) -> tuple[int, Sequence[str]]:
    """Return how many rows stand above the header, and the header, which may be missing."""
    filled = [len(list(filter(None, row))) for row in rows]
    usual = median([count for count in filled if count] or [0])
    full = [at for at, count in enumerate(filled) if count and count >= _FULL * usual]
    if not full:
        return 0, ()
    above = full[0]
    data = [at for at in full if any(map(_DATUM.fullmatch, rows[at]))]
    while rows[above][0].startswith("#") and data and data[0] > full[full.index(above) + 1]:
        above = full[full.index(above) + 1]
    header = rows[above]
    for at, cell in enumerate(header):
        below = [row[at] for row in rows[above + 1 :] if at < len(row) and row[at]]
        is_datum = _DATUM.fullmatch(cell) and not _YEAR.fullmatch(cell)
        if is_datum and below and all(map(_DATUM.fullmatch, below)):
            return above, ()
    return above, [header[0].lstrip("# "), *header[1:]]


def _begins_table(before: Sequence[str], row: Sequence[str], after: Sequence[str]) -> bool:
    """Return whether a row below an empty one is a header: it has words between figures."""
    is_datum = ([bool(_DATUM.fullmatch(one)) for one in cells] for cells in (before, row, after))
    return all(row) and (True, False, True) in zip(*is_datum, strict=False)


def _blocks(texts: Iterable[str], number: int) -> list[Block]:
    """Return the paragraphs of texts; their lines stay apart."""
    paragraphs = chain.from_iterable(re.split(r"\n\s*\n", text) for text in texts)
    parted = ([line.strip() for line in one.split("\n") if line.strip()] for one in paragraphs)
    return [
        Block("text", number, number, HARD_BREAK.join(map(escaped, lines)))
        for lines in parted
        if lines
    ]

"""Records of a run, one JSON object a line: on disk as soon as made, or all at once."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from crag.errors import DataError
from crag.papers.saving import outside_faults, replacing

Record = TypeVar("Record", bound=BaseModel)


def write_records(path: Path, records: Iterable[BaseModel]) -> None:
    """Write all records, one JSON object a line, or nothing.

    Raises:
        TrainingError: the disk is full, or the file cannot be written.
    """
    with outside_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as written, written.open("w", encoding="utf-8") as file:
            file.writelines(record.model_dump_json() + "\n" for record in records)


def digest_of(records: Iterable[BaseModel]) -> str:
    """Return the SHA-256 of records, to tell whether a run goes on with the same data."""
    digest = hashlib.sha256()
    for record in records:
        digest.update(record.model_dump_json().encode() + b"\n")
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_records(path: Path, form: type[Record]) -> list[Record]:
    """Read records of one form, one JSON object a line, or all in one JSON array.

    Raises:
        DataError: the file is missing, empty or not UTF-8, or a line (of an array, an element) is
            not such a record.
    """
    records: list[Record] = []
    for number, row in _numbered_rows(path):
        try:
            if isinstance(row, str):
                records.append(form.model_validate_json(row))
            else:
                records.append(form.model_validate(row))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the row"
            raise DataError(path, f"{place}: {first['msg']}", number) from error
    if not records:
        raise DataError(path, "it holds no record")
    return records


def _numbered_rows(path: Path) -> Iterable[tuple[int, object]]:
    """Return the lines of a file, or the elements of its JSON array, with their numbers from 1."""
    lines = list(numbered_lines(path))
    if not lines or not lines[0][1].lstrip().startswith("["):
        return lines
    try:
        return enumerate(json.loads(path.read_text(encoding="utf-8")), 1)
    except json.JSONDecodeError as error:
        raise DataError(path, f"this is not JSON: {error.msg}", error.lineno) from error


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Read JSON objects, one a line.

    Raises:
        DataError: the file is missing or not UTF-8, or a line is no JSON.
    """
    return [row for _, row in numbered_objects(path)]


def numbered_objects(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield what stands in each line that is not blank, with the line's number from 1.

    Raises:
        DataError: the file is missing or not UTF-8, or a line is no JSON.
    """
    for number, line in numbered_lines(path):
        try:
            yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(path, f"this is not JSON: {error.msg}", number) from error


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1.

    Raises:
        DataError: the file is missing or not UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except UnicodeDecodeError as error:
        raise DataError(path, f"it is not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}") from error

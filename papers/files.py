"""Files of data and models: written whole or not at all; records are one JSON object a line."""

import errno
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from crag.errors import CragError, DataError
from crag.models.model_card import CARD
from crag.plain import first_line

Record = TypeVar("Record", bound=BaseModel)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Numbers of the errors of a full disk, a spent quota, and a file beyond the limit of its size."""


@contextmanager
def outside_faults(output: Path) -> Iterator[None]:
    """Raise disk failures as `CragError`; what was saved before remains usable.

    Raises:
        CragError: something could not be written to `output`.
    """
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:
        # torch raises a RuntimeError where others raise an OSError.
        if isinstance(error, RuntimeError) and "inline_container" not in str(error):
            raise
        advice = "Free space and start again: it resumes"
        if isinstance(error, OSError) and error.errno not in _FULL:
            advice = "Make this place writable and start again, or choose another --output"
        message = f"writing to {output} failed: {first_line(error)}. {advice}"
        raise CragError(message) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which takes the place of `path` if the block ends well.

    It always has the same name, so that the next run replaces what a killed one left.
    """
    written = path.with_name(f".{path.stem}.new{path.suffix}")
    try:
        yield written
        written.chmod(0o644)  # Some libraries let the owner alone read what they write.
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


def save_model(
    model: Any,
    tokenizer: Any,
    output: Path,
    card: BaseModel,
    weights: Mapping[str, Any] | None = None,
) -> None:
    """Write model and tokenizer, then the card; files are renamed only when all are complete.

    `weights` are the whole ones of a model of which each process holds a shard.

    Raises:
        CragError: the disk is full, or `output` cannot be written to.
    """
    folder = output / ".new"
    with outside_faults(output):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            model.save_pretrained(folder, state_dict=weights)
            tokenizer.save_pretrained(folder)
            for old in [output / CARD, *output.glob("*.safetensors*")]:
                old.unlink(missing_ok=True)
            for file in sorted(folder.iterdir()):
                file.replace(output / file.name)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        write_card(output, card)


def write_card(folder: Path, card: BaseModel) -> None:
    """Write the card into `folder` atomically."""
    text = json.dumps(card.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    with replacing(folder / CARD) as written:
        written.write_text(text, encoding="utf-8")


def write_records(path: Path, records: Iterable[BaseModel]) -> None:
    """Write all records, one JSON object a line, or nothing.

    Raises:
        CragError: the disk is full, or the file cannot be written.
    """
    with outside_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as written, written.open("w", encoding="utf-8") as file:
            file.writelines(record.model_dump_json() + "\n" for record in records)


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

"""Lines of the CRAG repository's `choices` and `retrieved_psgs`."""

import re
from collections.abc import Sequence
from pathlib import Path

from langchain_core.documents import Document

from crag.errors import DataError
from crag.papers.bench.examples import TaskName
from crag.papers.loading.alignment import align
from crag.papers.loading.fields import checked_choices, documents
from crag.papers.loading.files import read_lines
from crag.papers.loading.read_log import ReadLog, UnusableRowError

_SEPARATOR, _TITLE_END = " [sep] ", " // "
_SELF_CRAG = re.compile(r"^(.*? // )?knowledge1:", re.IGNORECASE)
_LABELS = ("ABCDE", "12345")


def read_beside(
    path: Path, questions: Sequence[str], reading: ReadLog, *, overlapping: bool = True
) -> list[str]:
    """Return the lines of a file aligned with the questions, or none if it is missing.

    Lines that are off by one are shifted. Options share few words with their question, so they are
    not `overlapping` and only their number is checked.

    Raises:
        DataError: the lines belong to other questions, or their number differs.
    """
    if not path.is_file():
        return []
    lines = read_lines(path, ReadLog(path))
    if not overlapping and len(lines) == len(questions):
        return lines
    found = align(questions, lines) if overlapping else None
    if found is None or found.shift is None:
        problem = f"its {len(lines)} lines do not belong to the {len(questions)} questions"
        raise DataError(path, f"{problem} of 'sources'; take both from the same version")
    for shift in dict.fromkeys(filter(None, (found.shift, *(one.shift for one in found.moved)))):
        reading.repair(f"moved lines of {path.name} by {shift:+d} to align them with the questions")
    return found.fitted(lines)


def choices_of(line: str, number: int, reading: ReadLog) -> tuple[tuple[str, str], ...]:
    """Read ``A: text; B: text; …`` or ``1: text; 2: text; …``."""
    labels = next((some for some in _LABELS if line.startswith(f"{some[0]}: ")), None)
    if labels is None:
        message = f"its options do not begin with a label: {line[:40]!r}"
        raise UnusableRowError(message)
    found, rest = [], f"; {line}"
    for label, following in zip(labels, [*labels[1:], None], strict=True):
        rest = rest.removeprefix(f"; {label}: ")
        end = rest.find(f"; {following}: ") if following else -1
        found.append((label, (rest if end < 0 else rest[:end]).strip()))
        if end < 0:
            break
        rest = rest[end:]
    return checked_choices(found, number, reading)


def passages_of(line: str, number: int, task: TaskName, reading: ReadLog) -> tuple[Document, ...]:
    """Read passages joined by ``[sep]``; PopQA's are text only, others ``title // text``.

    The published file of the biographies holds the three texts of Self-CRAG instead of passages;
    such a line has none.
    """
    pieces = [piece for piece in line.split(_SEPARATOR) if piece.strip()]
    if any(_SELF_CRAG.match(piece) for piece in pieces):
        reading.repair("retrieved_psgs holds Self-CRAG's three texts, not passages", number)
        return ()
    entries = []
    for piece in pieces:
        title, found, text = piece.partition(_TITLE_END)
        whole = task == "popqa" or not found
        entries.append({"title": "", "text": piece} if whole else {"title": title, "text": text})
    return documents(entries, number, reading)

"""The CRAG repository's knowledge files, one text for each question and action.

`correct` and `incorrect` begin each line with ``#``; `ambiguous` joins both as ``Knowledge1: …
[sep] Knowledge2: …``. The published files have faults (docs/method/paper-and-code.md lists them):
lines of neighbouring questions, halves of two questions, lone carriage returns, missing marks and
empty lines. What can be told from the files is repaired and noted; anything else raises.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from crag.correction.strips import joint_text
from crag.errors import DataError
from crag.papers.loading.alignment import Alignment, align
from crag.papers.loading.files import read_lines
from crag.papers.loading.read_log import ReadLog

FILES = {"internal": "correct", "external": "incorrect", "combined": "ambiguous"}
"""The names that `Example.knowledge` uses, and their files."""
_FIRST_HALF = re.compile(r"\s*knowledge1:\s*", re.IGNORECASE)
SECOND_HALF = re.compile(r"\s*\[sep\]\s*knowledge2:\s*", re.IGNORECASE)
_MARK = "#"


class Aligned(NamedTuple):
    """One knowledge file, a text for each question."""

    name: str
    """internal, external or combined."""
    texts: list[str]
    """Without the mark; empty if the file has no text."""
    unmarked: set[int]
    """Questions, from 0, whose line lacks the mark and may begin in mid-text."""
    notes: list[str]
    as_published: bool = False
    """The lines to the letter, empty ones too; after the last one, questions have none."""

    def text_of(self, place: int) -> str | None:
        """Return the text of a question, from 0; None if there is none."""
        if self.as_published:
            return self.texts[place]
        return self.texts[place] or None


def read_knowledge(
    folder: Path, questions: Sequence[str], *, as_published: bool = False
) -> list[Aligned]:
    """Read the knowledge files in ``ref`` or in the folder itself.

    With `as_published` nothing is repaired: see `released_lines`.

    Raises:
        DataError: a file's lines do not belong to the questions.
    """
    places = {
        name: next(
            (place for place in (folder / "ref" / file, folder / file) if place.is_file()), None
        )
        for name, file in FILES.items()
    }
    given = {name: path for name, path in places.items() if path}
    if as_published:
        return [_as_published(name, path, questions) for name, path in given.items()]
    found: dict[str, Aligned] = {}
    for name, path in given.items():
        found[name] = _read(name, path, questions, found)
    return list(found.values())


def released_lines(path: Path) -> list[str]:
    """Return the lines as the official program reads them (official code, inference).

    A lone carriage return ends a line too, the mark stays, and white space around a line goes.
    """
    lines = path.read_text(encoding="utf-8").split("\n")
    return [line.strip() for line in (lines[:-1] if lines[-1] == "" else lines)]


def _as_published(name: str, path: Path, questions: Sequence[str]) -> Aligned:
    reading, lines = ReadLog(path), released_lines(path)
    counts = f"{len(lines)} lines for {len(questions)} questions"
    reading.repair(f"as the official program reads it, nothing repaired: {counts}")
    return Aligned(name, lines, set(), reading.notes, as_published=True)


def _read(
    name: str, path: Path, questions: Sequence[str], others: Mapping[str, Aligned]
) -> Aligned:
    reading = ReadLog(path)
    lines = _whole_lines(path, reading)
    halves = [SECOND_HALF.split(line, maxsplit=1) for line in lines]
    found = _aligned(path, questions, [half[0] for half in halves], reading)
    fitting = found.fitted(lines)
    if name == "combined":
        second = align(questions, [half[-1] if len(half) > 1 else "" for half in halves])
        same = not second.places or found.places == second.places
        fitting = _joined_anew(path, fitting, others, reading, same=same)
    unmarked = _mark_faults(fitting, reading) if name != "combined" else set()
    for place, line in enumerate(fitting, start=1):
        if not line.removeprefix(_MARK).strip():
            reading.repair("no knowledge for the question", place)
    texts = [line.removeprefix(_MARK).strip() for line in fitting]
    return Aligned(name, texts, unmarked, reading.notes)


def _whole_lines(path: Path, reading: ReadLog) -> list[str]:
    lines = read_lines(path, reading)
    returns = sum(line.count("\r") for line in lines)
    if returns:
        reading.repair(f"{returns} carriage returns within lines are read as spaces")
    return [line.replace("\r", " ") for line in lines]


def _aligned(
    path: Path, questions: Sequence[str], lines: Sequence[str], reading: ReadLog
) -> Alignment:
    """Return which line belongs to each question, and note what is moved; raise if none fits."""
    found = align(questions, lines)
    if found.shift is None:
        raise DataError(path, _misfit(found, len(questions), len(lines)))
    if not found.checked:
        reading.repair("too few lines to check that they belong to the questions")
    if found.shift:
        reading.repair(
            f"moved by {found.shift:+d} line: overlap with the questions "
            f"{found.overlaps[found.shift]:.2f} instead of {found.overlaps[0]:.2f}"
        )
    for first, last, shift in found.moved:
        asked = f"questions {first + 1} to {last + 1}"
        reading.repair(f"{asked} had lines of their neighbours: moved by {shift:+d} line")
    if (extra := len(lines) - found.shift - len(questions)) > 0:
        reading.repair(f"dropped {extra} lines after the last question")
    return found


def _misfit(found: Alignment, questions: int, lines: int) -> str:
    if not found.checked:
        return f"it has {lines} lines for {questions} questions, too few to align"
    overlaps = ", ".join(f"{value:.2f} by {shift:+d}" for shift, value in found.overlaps.items())
    return (
        f"its {lines} lines do not belong to the {questions} questions: word overlap {overlaps}, "
        f"{found.unrelated:.2f} with unrelated lines. Take both from the same task and version"
    )


def has_halves(line: str, internal: str, external: str) -> bool:
    """Return whether a line of combined knowledge joins these two texts, white space aside."""
    first, *second = SECOND_HALF.split(line, maxsplit=1)
    halves = [_FIRST_HALF.sub("", first, count=1), *second, ""][:2]
    return [half.split() for half in halves] == [internal.split(), external.split()]


def _joined_anew(
    path: Path,
    lines: Sequence[str],
    others: Mapping[str, Aligned],
    reading: ReadLog,
    *,
    same: bool,
) -> list[str]:
    """Join from the other files what combined knowledge joins from two different questions.

    `same` says whether both halves seem to belong to the same questions. Where a file has carriage
    returns within lines, its texts drift away from their questions ever further.

    Raises:
        DataError: they do not, and one of the files is missing.
    """
    if not {"internal", "external"} <= others.keys():
        if same:
            return list(lines)
        problem = "its internal and external halves belong to different questions"
        raise DataError(path, f"{problem}; put 'correct' and 'incorrect' beside it")
    joined = list(lines)
    texts = zip(others["internal"].texts, others["external"].texts, strict=True)
    for place, (internal, external) in enumerate(texts):
        if not has_halves(lines[place], internal, external):
            reading.repair("not the two texts of the question, joined anew", place + 1)
            joined[place] = joint_text(internal, external)
    return joined


def _mark_faults(lines: Sequence[str], reading: ReadLog) -> set[int]:
    """Return the indices, from 0, of lines with text and no mark; none if no line has a mark."""
    if not any(line.startswith(_MARK) for line in lines):
        reading.repair("no line has the mark '#'")
        return set()
    faults = {
        place for place, line in enumerate(lines) if line.strip() and not line.startswith(_MARK)
    }
    for place in sorted(faults):
        reading.repair("without the mark '#', so the text may begin in the middle", place + 1)
    return faults

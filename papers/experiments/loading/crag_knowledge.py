"""The CRAG repository's knowledge files, one text for each question and action.

`correct` and `incorrect` begin each line with ``#``; `ambiguous` joins both as ``Knowledge1: …
[sep] Knowledge2: …``. The published ARC files are shifted by one line, and some PubHealth lines
lack the mark, begin in mid-text or are empty. Repairs are noted; anything else raises.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from crag.errors import DataError
from crag.papers.experiments.loading.alignment import Alignment, align, shifted
from crag.papers.experiments.loading.files import read_lines
from crag.papers.experiments.loading.read_log import ReadLog

FILES = {"internal": "correct", "external": "incorrect", "combined": "ambiguous"}
"""The names that `Example.knowledge` uses, and their files."""
_SECOND = re.compile(r"\s*\[sep\]\s*knowledge2:\s*", re.IGNORECASE)
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


def read_knowledge(folder: Path, questions: Sequence[str]) -> list[Aligned]:
    """Read the knowledge files in ``ref`` or in the folder itself.

    Raises:
        DataError: a file's lines do not belong to the questions.
    """
    places = {
        name: next(
            (place for place in (folder / "ref" / file, folder / file) if place.is_file()), None
        )
        for name, file in FILES.items()
    }
    return [_read(name, path, questions) for name, path in places.items() if path]


def _read(name: str, path: Path, questions: Sequence[str]) -> Aligned:
    reading = ReadLog(path)
    lines = read_lines(path, reading)
    if name == "combined":
        _check_halves(path, questions, lines)
    shift = _shift(path, questions, lines, reading)
    fitting = shifted(lines, shift, len(questions))
    unmarked = _mark_faults(fitting, reading) if name != "combined" else set()
    for place, line in enumerate(fitting, start=1):
        if not line.removeprefix(_MARK).strip():
            reading.repair("no knowledge for the question", place)
    texts = [line.removeprefix(_MARK).strip() for line in fitting]
    return Aligned(name, texts, unmarked, reading.notes)


def _shift(path: Path, questions: Sequence[str], lines: Sequence[str], reading: ReadLog) -> int:
    """Return the shift of the file in lines, and note it; raise if no shift fits."""
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
    if (extra := len(lines) - found.shift - len(questions)) > 0:
        reading.repair(f"dropped {extra} lines after the last question")
    return found.shift


def _misfit(found: Alignment, questions: int, lines: int) -> str:
    if found.broken_at is not None:
        return (
            f"from about question {found.broken_at + 1} on, its lines belong to other questions: "
            "a line is missing or doubled there. Create the file again"
        )
    if not found.checked:
        return f"it has {lines} lines for {questions} questions, too few to align"
    overlaps = ", ".join(f"{value:.2f} by {shift:+d}" for shift, value in found.overlaps.items())
    return (
        f"its {lines} lines do not belong to the {questions} questions: word overlap {overlaps}, "
        f"{found.unrelated:.2f} with unrelated lines. Take both from the same task and version"
    )


def _check_halves(path: Path, questions: Sequence[str], lines: Sequence[str]) -> None:
    """Raise if combined knowledge joins texts of two different questions."""
    halves = [_SECOND.split(line, maxsplit=1) for line in lines]
    whole = [half if len(half) > 1 else ["", ""] for half in halves]
    shifts = {align(questions, [half[side] for half in whole]).shift for side in (0, 1)} - {None}
    if len(shifts) > 1:
        problem = "its internal and external halves belong to different questions"
        raise DataError(path, f"{problem}; join them again from 'correct' and 'incorrect'")


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

"""Rivals of a section: what a search by words finds in the same package for the same questions.

A search of a package by the unit's own questions also says which of these ask too little: one in
plain words, or words to search for, whose section is not among the first is left out.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from crag.papers.reader.asked_questions import (
    COMMON,
    Asked,
    AskedQuestion,
    AskedRow,
    Kind,
    Rival,
)
from crag.papers.reader.asked_units import Section

BY_KIND: Mapping[Kind, int] = {"plain": 5, "other": 3, "search": 2}
"""Rivals taken of what a question of each kind finds."""
NEIGHBOURS = 2
"""Rivals of the same file besides."""
MOST = 8
"""Rivals of one unit."""
FIRST = 10
"""A plain question and words to search for are kept if their section is among so many."""
REPEATED = 0.4
"""Share of a unit's runs of words from which on a text repeats it, and is no rival."""
_FOUND = 14
"""Sections looked at for each question."""
_RUN, _STEM = 4, 7
_WORD = re.compile(r"[a-z0-9_]{3,}")


def with_rivals(
    asked: Iterable[Asked], sections: Iterable[Section], seed: int = 0
) -> list[AskedRow]:
    """Return the units that keep a question and have a rival, package after package."""
    of_package: dict[str, list[Section]] = defaultdict(list)
    for section in sections:
        of_package[section.package].append(section)
    units: dict[str, list[Asked]] = defaultdict(list)
    for unit in asked:
        units[unit.section.package].append(unit)
    draw = random.Random(seed)  # noqa: S311 - data, no secret
    rows: list[AskedRow] = []
    for package, of_units in units.items():
        search = _Search(of_package[package])
        rows += [row for unit in of_units if (row := search.row(unit, draw)) is not None]
    return rows


class _Search:
    """The sections of one package by BM25 (k1 1.2, b 0.75)."""

    def __init__(self, sections: Sequence[Section]) -> None:
        import bm25s

        self._sections = sections
        self._places = {(one.source, one.text): place for place, one in enumerate(sections)}
        self._of_source: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(sections):
            self._of_source[one.source].append(place)
        self._index = bm25s.BM25(k1=1.2, b=0.75)
        self._index.index([_stems(f"{s.path} {s.text}") for s in sections], show_progress=False)

    def row(self, unit: Asked, draw: random.Random) -> AskedRow | None:
        """Return a unit with its rivals; None if no question or no rival is left."""
        own = self._places[unit.section.source, unit.section.text]
        found = {question.kind: self._found(question.question) for question in unit.questions}
        near = self._of_source[unit.section.source]
        neighbours = draw.sample(near, min(NEIGHBOURS + 1, len(near)))
        chosen: list[int] = []
        for places, most in (
            *((found.get(kind, []), most) for kind, most in BY_KIND.items()),
            (neighbours, NEIGHBOURS),
        ):
            chosen += [place for place in places if place != own and place not in chosen][:most]
        runs = _runs(unit.section.text[slice(*unit.unit)])
        texts = [self._sections[place] for place in chosen]
        rivals = [one for one in texts if not _repeats(runs, one.text)][:MOST]
        questions = [one for one in unit.questions if _is_found(one, found[one.kind], own)]
        if not questions or not rivals:
            return None
        return AskedRow(
            package=unit.section.package,
            source=unit.section.source,
            title=unit.section.title,
            section=unit.section.section,
            text=unit.section.text,
            unit=unit.unit,
            questions=questions,
            rivals=[Rival(title=one.title, section=one.section, text=one.text) for one in rivals],
        )

    def _found(self, question: str) -> list[int]:
        """Return the best sections, each with a word of the question."""
        words = [word for word in _WORD.findall(question.lower()) if word not in COMMON]
        if not words:
            return []
        scores = self._index.get_scores(list(dict.fromkeys(word[:_STEM] for word in words)))
        best = np.argsort(-scores, kind="stable")[:_FOUND]
        return [int(place) for place in best if scores[place] > 0]


def _is_found(question: AskedQuestion, places: Sequence[int], own: int) -> bool:
    return question.kind not in {"plain", "search"} or own in places[:FIRST]


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for word in _WORD.findall(text.lower())]


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[start : start + _RUN]) for start in range(len(words) - _RUN + 1)}


def _repeats(runs: set[tuple[str, ...]], text: str) -> bool:
    return bool(runs) and len(runs & _runs(text)) >= REPEATED * len(runs)

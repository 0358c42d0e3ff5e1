"""Find which line of a file belongs to each question, by word overlap.

Files that are aligned by line number alone can be misaligned unnoticed: CRAG's published web
knowledge is shifted by one line for ARC, and for 55 questions of PopQA, between a lost line and a
doubled one. Rare words that a question shares with its knowledge show which line belongs to it.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

SHIFTS = (0, -1, 1)
"""Shifts that are tried for a whole file, in lines; 0 comes first."""
_LOCAL = (-2, -1, 0, 1, 2)
"""Shifts that a part of a file may have."""
FEWEST_LINES = 5
"""Fewer lines are not checked."""
RUN = 1.5
"""Gain in overlap under another shift, summed over neighbouring lines, from which these lines count
as moved: two lines whose words all match, or eight lines such as ARC's."""
CLEARLY = 1.5
"""How many times more the lines must overlap than unrelated ones."""
LEAST = 0.05
"""Overlap below this counts as chance."""
_WORD = re.compile(r"\w+")
_Words = Sequence[frozenset[str]]
_Shares = Sequence[float | None]
"""The overlap of each question with its line; None if there is no line or text."""


class Moved(NamedTuple):
    """Neighbouring questions whose lines stand elsewhere than those of the other questions."""

    first: int
    """The first question, from 0."""
    last: int
    shift: int
    """Question `i` belongs to line `i + shift`."""


class Alignment(NamedTuple):
    """How knowledge lines are aligned with questions."""

    shift: int | None
    """Most questions `i` belong to line `i + shift`; None if no shift makes them fit."""
    moved: tuple[Moved, ...] = ()
    """The questions that have another shift, in order."""
    places: tuple[int | None, ...] = ()
    """The line of each question, from 0; None if it has none."""


def align(questions: Sequence[str], knowledge: Sequence[str]) -> Alignment:
    """Find the line of `knowledge` that belongs to each of `questions`.

    Overlap is the share of a question's words, weighted by their rarity among the questions, that
    occur in its knowledge. Empty lines are ignored. Too few lines are not checked: they are taken
    in order if there are as many lines as questions.
    """
    asked, told = _words(questions), _words(knowledge)
    if min(len(asked), sum(map(bool, told))) < FEWEST_LINES:
        if len(asked) != len(told):
            return Alignment(None)
        return Alignment(0, places=tuple(range(len(asked))))
    counts = Counter(word for words in asked for word in words)
    weights = {word: math.log(len(asked) / count) for word, count in counts.items()}
    shares = {shift: _shares(asked, told, weights, shift) for shift in _LOCAL}
    overlaps = {shift: _mean(shares[shift]) for shift in SHIFTS}
    turns = {len(told) // 3, len(told) // 2} - {0, 1}  # Lines far away, which are unrelated.
    far = [_mean(_shares(asked, [*told[n:], *told[:n]], weights, 0)) for n in turns]
    path = _path(shares, max(SHIFTS, key=lambda shift: overlaps[shift]))
    usual = Counter(path).most_common(1)[0][0]
    runs = [(shift, [n for n, _ in run]) for shift, run in groupby(enumerate(path), lambda e: e[1])]
    moved = tuple(Moved(run[0], run[-1], shift) for shift, run in runs if shift != usual)
    reached = _mean([shares[shift][place] for place, shift in enumerate(path)])
    if usual not in SHIFTS or reached < max(LEAST, CLEARLY * _mean(far)):
        return Alignment(None)
    return Alignment(usual, moved, _places(path, shares, len(told)))


def _words(texts: Sequence[str]) -> _Words:
    return [frozenset(_WORD.findall(text.lower())) for text in texts]


def _shares(asked: _Words, told: _Words, weights: Mapping[str, float], shift: int) -> _Shares:
    shares: list[float | None] = []
    for place, words in enumerate(asked, start=shift):
        line = told[place] if 0 <= place < len(told) else frozenset()
        total = sum(weights[word] for word in words)
        held = sum(weights[word] for word in words & line)
        shares.append((held / total if total else 0.0) if line else None)
    return shares


def _mean(shares: _Shares) -> float:
    values = [share for share in shares if share is not None]
    return sum(values) / len(values) if values else 0.0


def _path(shares: Mapping[int, _Shares], usual: int) -> list[int]:
    """Return the shift of each question, so that they overlap most in all (Viterbi).

    Leaving the usual shift costs `RUN`, and each line under another one `LEAST`, so that chance
    moves nothing.
    """
    order = sorted(_LOCAL, key=lambda shift: shift != usual)
    reached = {shift: 0.0 if shift == usual else -RUN for shift in order}
    steps: list[dict[int, int]] = []
    for place in range(len(shares[usual])):
        best = max(order, key=lambda shift: reached[shift])
        before = {
            shift: shift if shift != usual and reached[shift] >= reached[best] - RUN else best
            for shift in order
        }
        reached = {
            shift: reached[earlier]
            + (shares[shift][place] or 0.0)
            - (0.0 if shift == usual else LEAST)
            - (0.0 if shift in {usual, earlier} else RUN)
            for shift, earlier in before.items()
        }
        steps.append(before)
    shift, path = max(order, key=lambda one: reached[one]), list[int]()
    for before in reversed(steps):
        path.append(shift)
        shift = before[shift]
    return path[::-1]


def _places(
    path: Sequence[int], shares: Mapping[int, _Shares], lines: int
) -> tuple[int | None, ...]:
    """Return the line of each question; of two that claim one line, the better fit has it."""
    fits = [shares[shift][question] or 0.0 for question, shift in enumerate(path)]
    owners: dict[int, int] = {}
    for question, shift in enumerate(path):
        rival = owners.setdefault(question + shift, question)
        if fits[question] > fits[rival]:
            owners[question + shift] = question
    return tuple(
        line if 0 <= line < lines and owners[line] == question else None
        for question, line in enumerate(place + shift for place, shift in enumerate(path))
    )

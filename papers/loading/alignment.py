"""Find which line of a file belongs to each question, by word overlap.

Files that are aligned by line number alone can be misaligned unnoticed: CRAG's published web
knowledge is shifted by one line for ARC, and for 55 questions of PopQA, between a lost line and a
doubled one. Rare words that a question shares with its knowledge show which line belongs to it.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
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
"""How many times more a shift must overlap than any other shift, and than unrelated lines."""
LEAST = 0.05
"""Overlap below this counts as chance."""
_WORD = re.compile(r"\w+")


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
    overlaps: dict[int, float]
    """Mean overlap for each shift of the whole file, from 0 to 1."""
    unrelated: float
    """Mean overlap of questions with lines far away."""
    moved: tuple[Moved, ...] = ()
    """The questions that have another shift, in order."""
    places: tuple[int | None, ...] = ()
    """The line of each question, from 0; None if it has none."""

    @property
    def checked(self) -> bool:
        """Whether there were enough lines to check."""
        return bool(self.overlaps)

    def fitted(self, lines: Sequence[str]) -> list[str]:
        """Return the line of each question, or an empty one."""
        return ["" if place is None else lines[place] for place in self.places]


def align(questions: Sequence[str], knowledge: Sequence[str]) -> Alignment:
    """Find the line of `knowledge` that belongs to each of `questions`.

    Overlap is the share of a question's words, weighted by their rarity among the questions, that
    occur in its knowledge. Empty lines are ignored. Too few lines are not checked: they are taken
    in order if there are as many lines as questions.
    """
    asked, told = [_words(one) for one in questions], [_words(one) for one in knowledge]
    usable = sum(bool(words) for words in told)
    if min(len(asked), usable) < FEWEST_LINES:
        if len(asked) != len(told):
            return Alignment(None, {}, 0.0)
        return Alignment(0, {}, 0.0, places=tuple(range(len(asked))))
    weights = _weights(asked)
    shares = {shift: _shares(asked, told, weights, shift) for shift in _LOCAL}
    overlaps = {shift: _mean(shares[shift]) for shift in SHIFTS}
    unrelated = _unrelated(asked, told, weights)
    path = _path(shares, max(SHIFTS, key=lambda shift: overlaps[shift]))
    usual = Counter(path).most_common(1)[0][0]
    moved = _moved(path, usual)
    reached = _mean([shares[shift][place] for place, shift in enumerate(path)])
    others = max(overlaps[shift] for shift in SHIFTS if shift != usual)
    belongs = usual in SHIFTS and reached >= max(LEAST, CLEARLY * unrelated)
    if not belongs or not (moved or reached >= CLEARLY * others):
        return Alignment(None, overlaps, unrelated)
    return Alignment(usual, overlaps, unrelated, moved, _places(path, shares, len(told)))


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _weights(asked: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weigh words by their rarity; a word in every question weighs nothing."""
    counts = Counter(word for words in asked for word in words)
    return {word: math.log(len(asked) / count) for word, count in counts.items()}


_Shares = Sequence[float | None]
"""The overlap of each question with its line; None if there is no line or text."""


def _shares(
    asked: Sequence[frozenset[str]],
    told: Sequence[frozenset[str]],
    weights: dict[str, float],
    shift: int,
) -> _Shares:
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


def _unrelated(
    asked: Sequence[frozenset[str]], told: Sequence[frozenset[str]], weights: dict[str, float]
) -> float:
    """Return the mean overlap with lines a third and half of the file away, both ways round."""
    turns = {len(told) // 3, len(told) // 2} - {0, 1}
    turned = [[*told[turn:], *told[:turn]] for turn in turns]
    values = [_mean(_shares(asked, lines, weights, 0)) for lines in turned]
    return sum(values) / len(values) if values else 0.0


def _path(shares: dict[int, _Shares], usual: int) -> list[int]:
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


def _moved(path: Sequence[int], usual: int) -> tuple[Moved, ...]:
    runs = groupby(enumerate(path), key=lambda entry: entry[1])
    ranges = [(shift, [place for place, _ in run]) for shift, run in runs]
    return tuple(Moved(run[0], run[-1], shift) for shift, run in ranges if shift != usual)


def _places(path: Sequence[int], shares: dict[int, _Shares], lines: int) -> tuple[int | None, ...]:
    """Return the line of each question; of two that claim one line, the better fit has it."""
    owners: dict[int, int] = {}
    for question, shift in enumerate(path):
        line = question + shift
        rival = owners.get(line)
        if rival is None or _fit(shares, path, question) > _fit(shares, path, rival):
            owners[line] = question
    return tuple(
        question + shift
        if 0 <= question + shift < lines and owners[question + shift] == question
        else None
        for question, shift in enumerate(path)
    )


def _fit(shares: dict[int, _Shares], path: Sequence[int], question: int) -> float:
    return shares[path[question]][question] or 0.0

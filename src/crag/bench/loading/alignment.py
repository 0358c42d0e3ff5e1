"""Do questions and knowledge belong together? Word overlap, line by line and shifted.

Files that are aligned by line number alone go wrong silently: CRAG's published knowledge for ARC is
shifted by one line. Words that a question shares with its own knowledge, and with few other
questions, tell which line it belongs to.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

SHIFTS = (0, -1, 1)
"""Lines by which published knowledge may be off; 0 is tried first."""
FEWEST_LINES = 5
"""Fewer lines cannot be told apart."""
RUN = 1.5
"""Overlap, summed over neighbouring lines, that they must gain under another shift before the file
counts as broken there: two lines whose words all match, eight of the kind ARC has."""
CLEARLY = 1.5
"""How many times more a shift must overlap than any other, and than lines that have nothing to do
with each other."""
LEAST = 0.05
"""Overlap below this is chance."""
_WORD = re.compile(r"\w+")


class Alignment(NamedTuple):
    """How knowledge lines lie against questions."""

    shift: int | None
    """Question `i` belongs to line `i + shift`; None if no shift makes them belong together."""
    overlaps: dict[int, float]
    """Mean overlap for each shift, from 0 to 1."""
    unrelated: float
    """Mean overlap of questions with lines far away."""
    broken_at: int | None = None
    """The question, from 0, from which on lines are shifted otherwise than before."""

    @property
    def checked(self) -> bool:
        """Whether there were enough lines to tell."""
        return bool(self.overlaps)


def align(questions: Sequence[str], knowledge: Sequence[str]) -> Alignment:
    """Find the shift by which `knowledge` belongs to `questions`.

    Overlap is the share of a question's words, weighted by how rare they are among the questions,
    that its knowledge holds. Empty lines take no part. Too few lines are not checked: the shift is
    then 0 if there are as many lines as questions, else None.
    """
    asked, told = [_words(one) for one in questions], [_words(one) for one in knowledge]
    usable = sum(bool(words) for words in told)
    if min(len(asked), usable) < FEWEST_LINES:
        return Alignment(0 if len(asked) == len(told) else None, {}, 0.0)
    weights = _weights(asked)
    overlaps = {shift: _mean(_shares(asked, told, weights, shift)) for shift in SHIFTS}
    unrelated = _unrelated(asked, told, weights)
    best = max(SHIFTS, key=lambda shift: overlaps[shift])
    if overlaps[best] < max(LEAST, CLEARLY * unrelated):
        return Alignment(None, overlaps, unrelated)
    broken = _broken(asked, told, weights, best)
    others = max(overlaps[shift] for shift in SHIFTS if shift != best)
    sound = broken is None and overlaps[best] >= CLEARLY * others
    return Alignment(best if sound else None, overlaps, unrelated, broken)


def shifted(lines: Sequence[str], shift: int, length: int) -> list[str]:
    """Return `length` lines moved so that line `i` is the one at `i + shift`, or empty."""
    return [
        lines[place] if 0 <= place < len(lines) else "" for place in range(shift, length + shift)
    ]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _weights(asked: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weigh words by their rarity: one that every question has says nothing."""
    counts = Counter(word for words in asked for word in words)
    return {word: math.log(len(asked) / count) for word, count in counts.items()}


def _shares(
    asked: Sequence[frozenset[str]],
    told: Sequence[frozenset[str]],
    weights: dict[str, float],
    shift: int,
) -> list[float | None]:
    """Return the overlap of each question with its line; None where there is no line or text."""
    shares: list[float | None] = []
    for place, words in enumerate(asked, start=shift):
        line = told[place] if 0 <= place < len(told) else frozenset()
        total = sum(weights[word] for word in words)
        held = sum(weights[word] for word in words & line)
        shares.append((held / total if total else 0.0) if line else None)
    return shares


def _mean(shares: Sequence[float | None]) -> float:
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


def _broken(
    asked: Sequence[frozenset[str]],
    told: Sequence[frozenset[str]],
    weights: dict[str, float],
    shift: int,
) -> int | None:
    """Return where the shift changes: a run of lines overlaps clearly more under another one."""
    here = _shares(asked, told, weights, shift)
    starts = []
    for step in (-2, -1, 1, 2):
        there = _shares(asked, told, weights, shift + step)
        gains = [(two or 0.0) - (one or 0.0) - LEAST for one, two in zip(here, there, strict=True)]
        run, gain = _best_run(gains)
        if gain > RUN:
            starts.append(run.start or run.stop)
    return min(starts, default=None)


def _best_run(gains: Sequence[float]) -> tuple[range, float]:
    """Return the run of neighbours with the largest sum, and that sum (Kadane)."""
    best, largest, start, running = range(0), 0.0, 0, 0.0
    for place, gain in enumerate(gains):
        if running <= 0:
            start, running = place, 0.0
        running += gain
        if running > largest:
            best, largest = range(start, place + 1), running
    return best, largest

"""Check that questions and knowledge belong together, by word overlap per line and shift.

Files that are aligned by line number alone can be misaligned unnoticed: CRAG's published knowledge
for ARC is shifted by one line. Rare words that a question shares with its knowledge show which line
belongs to it.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

SHIFTS = (0, -1, 1)
"""Shifts that are tried, in lines; 0 comes first."""
FEWEST_LINES = 5
"""Fewer lines are not checked."""
RUN = 1.5
"""Gain in overlap under another shift, summed over neighbouring lines, from which the file counts
as broken there: two lines whose words all match, or eight lines such as ARC's."""
CLEARLY = 1.5
"""How many times more a shift must overlap than any other shift, and than unrelated lines."""
LEAST = 0.05
"""Overlap below this counts as chance."""
_WORD = re.compile(r"\w+")


class Alignment(NamedTuple):
    """How knowledge lines are aligned with questions."""

    shift: int | None
    """Question `i` belongs to line `i + shift`; None if no shift makes them belong together."""
    overlaps: dict[int, float]
    """Mean overlap for each shift, from 0 to 1."""
    unrelated: float
    """Mean overlap of questions with lines far away."""
    broken_at: int | None = None
    """The question, from 0, from which the lines have another shift than before."""

    @property
    def checked(self) -> bool:
        """Whether there were enough lines to check."""
        return bool(self.overlaps)


def align(questions: Sequence[str], knowledge: Sequence[str]) -> Alignment:
    """Find the shift by which `knowledge` belongs to `questions`.

    Overlap is the share of a question's words, weighted by their rarity among the questions, that
    occur in its knowledge. Empty lines are ignored. Too few lines are not checked: the shift is
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
    """Return `length` lines, where line `i` is the one at `i + shift`, or empty."""
    return [
        lines[place] if 0 <= place < len(lines) else "" for place in range(shift, length + shift)
    ]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _weights(asked: Sequence[frozenset[str]]) -> dict[str, float]:
    """Weigh words by their rarity; a word in every question weighs nothing."""
    counts = Counter(word for words in asked for word in words)
    return {word: math.log(len(asked) / count) for word, count in counts.items()}


def _shares(
    asked: Sequence[frozenset[str]],
    told: Sequence[frozenset[str]],
    weights: dict[str, float],
    shift: int,
) -> list[float | None]:
    """Return the overlap of each question with its line; None if there is no line or text."""
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
    """Return the line from which another shift overlaps clearly more, or None."""
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

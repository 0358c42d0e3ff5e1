"""What one pass over a passage tells: its score, its evidence, and where the answer is."""

from collections.abc import Sequence
from itertools import pairwise

from typing_extensions import TypedDict

PERCENT = 100


class Span(TypedDict):
    """The best answer in a passage, in the passage's own words."""

    start: int
    """Offset of its first character in the text."""
    end: int
    """Offset after its last one."""
    score: float
    """In [-1, 1]; above 0 it is likelier than that the passage holds no answer."""


class Reading(TypedDict):
    """What an evaluator read in one passage; plain JSON."""

    score: float
    """How well the passage serves the question, on the scale of `Evaluator.score`."""
    starts: list[int]
    """Offsets at which `evidence` changes, ascending, the first one 0; empty for an empty text."""
    evidence: list[int]
    """From each of `starts` on: the probability, in per cent, that this belongs to the answer's
    evidence."""
    span: Span | None
    """The best answer span; None for an empty text, and for one without a known word."""


def evidence_in(reading: Reading, start: int, end: int, *, best: float = 1.0) -> float:
    """Return the mean evidence, from 0 to 1, of the characters from `start` to `end`.

    With `best` below 1, only that share of them with the most evidence counts: half of a strip may
    answer while the rest leads up to it.
    """
    edges = [*reading["starts"], max(end, *reading["starts"], 0)] if reading["starts"] else []
    shares = sorted(
        (
            (share, min(high, end) - max(low, start))
            for (low, high), share in zip(pairwise(edges), reading["evidence"], strict=True)
            if min(high, end) > max(low, start)
        ),
        reverse=True,
    )
    left = wanted = best * max(1, end - start)
    total = 0.0
    for share, length in shares:
        counted = min(length, left)
        total += share * counted
        left -= counted
    return total / PERCENT / wanted


def sliced(reading: Reading, start: int, end: int, score: float) -> Reading:
    """Return the reading of the characters from `start` to `end` alone, with a `score` of its own.

    Offsets are those within the slice; a span that does not lie in it is left out.
    """
    ends = [*reading["starts"][1:], end]
    inside = [
        (max(low - start, 0), share)
        for low, high, share in zip(reading["starts"], ends, reading["evidence"], strict=True)
        if high > start and low < end
    ]
    span = reading["span"]
    if span is not None and start <= span["start"] and span["end"] <= end:
        span = Span(start=span["start"] - start, end=span["end"] - start, score=span["score"])
    else:
        span = None
    return Reading(
        score=score,
        starts=[low for low, _ in inside],
        evidence=[share for _, share in inside],
        span=span,
    )


def compressed(ends: Sequence[int], probabilities: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return `starts` and `evidence` of a reading for pieces that end at `ends`, the first at 0.

    Probabilities are rounded to per cent, and equal neighbours become one.
    """
    starts: list[int] = []
    evidence: list[int] = []
    begin = 0
    for end, probability in zip(ends, probabilities, strict=True):
        share = round(PERCENT * probability)
        if not evidence or evidence[-1] != share:
            starts.append(begin)
            evidence.append(share)
        begin = end
    return starts, evidence

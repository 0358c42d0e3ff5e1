"""What one pass over a passage tells: its score, its evidence, and where the answer is."""

from collections.abc import Sequence

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
    evidence: str
    """How likely it is, in per cent, that the text belongs to the answer's evidence, from each
    offset on: ``0:2 57:95 112:3``; empty for an empty text. `compressed` writes it."""
    span: Span | None
    """The best answer span; None for an empty text, and for one without a known word."""


def shares_of(reading: Reading) -> list[tuple[int, int]]:
    """Return each offset at which the evidence changes, and its per cent from there on."""
    pairs = (pair.split(":") for pair in reading["evidence"].split())
    return [(int(offset), int(share)) for offset, share in pairs]


def evidence_in(reading: Reading, start: int, end: int, *, best: float = 1.0) -> float:
    """Return the mean evidence, from 0 to 1, of the characters from `start` to `end`.

    With `best` below 1, only that share of them with the most evidence counts: half of a strip may
    answer while the rest leads up to it.
    """
    shares = [(share, high - low) for low, high, share in _pieces(reading, start, end)]
    left = wanted = best * max(1, end - start)
    total = 0.0
    for share, length in sorted(shares, reverse=True):
        counted = min(length, left)
        total += share * counted
        left -= counted
    return total / PERCENT / wanted


def sliced(reading: Reading, start: int, end: int, score: float) -> Reading:
    """Return the reading of the characters from `start` to `end` alone, with a `score` of its own.

    Offsets are those within the slice; a span that does not lie in it is left out.
    """
    inside = [(low - start, share) for low, _, share in _pieces(reading, start, end)]
    span = reading["span"]
    if span is not None:
        is_inside = start <= span["start"] and span["end"] <= end
        moved = Span(start=span["start"] - start, end=span["end"] - start, score=span["score"])
        span = moved if is_inside else None
    return Reading(score=score, evidence=_written(inside), span=span)


def compressed(ends: Sequence[int], probabilities: Sequence[float]) -> str:
    """Return the `evidence` of a reading for pieces that end at `ends`, the first at 0.

    Probabilities are rounded to per cent, and equal neighbours become one.
    """
    shares: list[tuple[int, int]] = []
    begin = 0
    for end, probability in zip(ends, probabilities, strict=True):
        share = round(PERCENT * probability)
        if not shares or shares[-1][1] != share:
            shares.append((begin, share))
        begin = end
    return _written(shares)


def _pieces(reading: Reading, start: int, end: int) -> list[tuple[int, int, int]]:
    """Return start, end and per cent of each piece of the characters from `start` to `end`."""
    shares = shares_of(reading)
    ends = [*(offset for offset, _ in shares[1:]), end]
    return [
        (max(low, start), min(high, end), share)
        for (low, share), high in zip(shares, ends, strict=False)
        if low < end and high > start
    ]


def _written(shares: Sequence[tuple[int, int]]) -> str:
    return " ".join(f"{offset}:{share}" for offset, share in shares)

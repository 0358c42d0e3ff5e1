"""Quote what a reading marks as evidence: sentences, list items, table rows and code.

Each part is judged in its strip, which was read in its document, and is quoted with what a reader
needs to understand it: the list or code that a colon announces, the header above a table's row.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crag.correction.evidence import part_score
from crag.parts import Quotation
from crag.state import Strip
from crag.text.quotable import Part, completed, parts_of

FEWEST_WORDS = 3
"""A shorter part says nothing by itself."""
MARGIN = 3.0
"""Log-odds by which a part that is quoted may be worse than the best one."""


class _Found(NamedTuple):
    odds: float
    strip: int
    part: int


def quotations_in(strips: Sequence[Strip], *, most: int, threshold: float) -> list[Quotation]:
    """Return at most `most` quotations if the best scores at least `threshold`, else none.

    Every strip must have its `reading`. Parts that follow each other are quoted as one, and no part
    is quoted twice, whichever strips it stands in. The order is that of the strips.
    """
    parts = [parts_of(strip["text"]) for strip in strips]
    found = sorted(_judged(strips, parts), key=lambda one: -one.odds)
    if not found or math.tanh(found[0].odds / 2) < threshold:
        return []
    quotations: list[Quotation] = []
    for odds, index, part in found:
        if odds < found[0].odds - MARGIN or len(quotations) == most:
            break
        start, end, text = completed(strips[index]["text"], parts[index], part)
        if not any(_repeats(other, index, start, end, text) for other in quotations):
            span = _span_within(strips[index], start, end)
            score = math.tanh(odds / 2)
            quotations.append(Quotation(text, index, score, (start, end), span))
    return _joined(sorted(quotations, key=lambda one: (one.strip, one.place)), strips)


def _judged(strips: Sequence[Strip], parts: Sequence[Sequence[Part]]) -> Iterator[_Found]:
    for index, strip in enumerate(strips):
        for number, part in enumerate(parts[index]):
            words = strip["text"][part.start : part.end].split()
            if part.kind != "header" and len(words) >= FEWEST_WORDS:
                score = part_score(strip["reading"], part.start, part.end)
                yield _Found(2 * math.atanh(max(-_ONE, min(_ONE, score))), index, number)


_ONE = 1 - 1e-12


def _repeats(other: Quotation, strip: int, start: int, end: int, text: str) -> bool:
    if other.strip == strip and other.place is not None:
        first, last = other.place
        if first <= start and end <= last:
            return True
    return " ".join(text.split()) in " ".join(other.text.split())


def _span_within(strip: Strip, start: int, end: int) -> tuple[int, int] | None:
    span = strip["reading"]["span"]
    if span is None or span["score"] <= 0 or not start <= span["start"] <= span["end"] <= end:
        return None
    return span["start"], span["end"]


def _joined(quotations: Sequence[Quotation], strips: Sequence[Strip]) -> list[Quotation]:
    """Join sentences that only white space divides."""
    joined: list[Quotation] = []
    for one in quotations:
        last = joined[-1] if joined else None
        if last is None or last.strip != one.strip or last.place is None or one.place is None:
            joined.append(one)
            continue
        between = strips[one.strip]["text"][last.place[1] : one.place[0]]
        if between.strip() or "\n" in last.text + one.text:
            joined.append(one)
            continue
        joined[-1] = Quotation(
            f"{last.text} {one.text}",
            one.strip,
            max(last.score, one.score),
            (last.place[0], one.place[1]),
            last.span or one.span,
        )
    return joined

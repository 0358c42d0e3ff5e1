"""Quote the strips that were read as the best evidence, in the words of their documents."""

import re
from collections.abc import Sequence
from typing import Final

from crag.correction.evidence import score_odds
from crag.correction.strips import score_of
from crag.parts import Quotation
from crag.state import Strip

MARGIN: Final = 4.0
"""Log-odds by which a strip that is quoted may be worse than the best one."""
_HEADINGS = re.compile(r"(?:\s*(?:#{1,6} .*|<!--.*-->)?\n)*\s*")
_BLOCK = re.compile(r"^\s*(?:[-*+•|>#]|\d{1,3}[.)]\s|```|~~~|\s{4})", re.MULTILINE)
"""How a line begins whose breaks matter: items, rows, headings, code."""


def quotations_in(strips: Sequence[Strip], *, most: int, threshold: float) -> list[Quotation]:
    """Return the best strips, at most `most`, if the best scores at least `threshold`; else none.

    Every strip must have its `reading` and the score of it. A strip is quoted whole, without the
    headings above it, and no text twice. The order is that of the strips.
    """
    scores = list(map(score_of, strips))
    ranked = sorted(range(len(strips)), key=lambda index: -scores[index])
    if not ranked or scores[ranked[0]] < threshold:
        return []
    worst = score_odds(scores[ranked[0]]) - MARGIN
    chosen: dict[str, int] = {}
    for index in ranked:
        if len(chosen) < most and score_odds(scores[index]) >= worst:
            start, end = _place(strips[index])
            chosen.setdefault(on_few_lines(strips[index]["text"][start:end]), index)
    return [
        Quotation(text, index, scores[index], _place(strips[index]), _span(strips[index]))
        for text, index in sorted(chosen.items(), key=lambda one: one[1])
    ]


def on_few_lines(text: str) -> str:
    """Join the lines of each paragraph of prose; lists, tables and code keep theirs."""
    if _BLOCK.search(text):
        return text.strip()
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))


def _place(strip: Strip) -> tuple[int, int]:
    """Return where the strip stands without the headings above it."""
    text = strip["text"]
    above = _HEADINGS.match(text)
    start = above.end() if above and above.end() < len(text) else 0
    return start, len(text.rstrip())


def _span(strip: Strip) -> tuple[int, int] | None:
    """Return where the answer stands, if that is likelier than that the strip holds none."""
    span = strip["reading"]["span"]
    return (span["start"], span["end"]) if span is not None and span["score"] > 0 else None

"""Quote the strips that were read as the best evidence, in the words of their documents."""

import math
import re
from collections.abc import Sequence
from typing import Final

from crag.parts import Quotation
from crag.state import Strip

MARGIN: Final = 4.0
"""Log-odds by which a strip that is quoted may be worse than the best one."""
_CERTAIN = 1 - 1e-12
_BLOCK = re.compile(r"^\s*(?:[-*+•|>#]|\d{1,3}[.)]\s|```|~~~|\s{4})", re.MULTILINE)
"""How a line begins whose breaks matter: items, rows, headings, code."""


def quotations_in(strips: Sequence[Strip], *, most: int, threshold: float) -> list[Quotation]:
    """Return the best strips, at most `most`, if the best scores at least `threshold`; else none.

    Every strip must have its `reading` and the score of it. A strip is quoted whole: it was cut so
    that it holds a few sentences, or a list, table or block of code with what announces it. No text
    is quoted twice. The order is that of the strips.
    """
    ranked = sorted(range(len(strips)), key=lambda index: -_odds(strips[index]))
    if not ranked or (strips[ranked[0]]["score"] or -1.0) < threshold:
        return []
    worst = _odds(strips[ranked[0]]) - MARGIN
    chosen: dict[str, int] = {}
    for index in ranked:
        if len(chosen) < most and _odds(strips[index]) >= worst:
            chosen.setdefault(on_few_lines(strips[index]["text"]), index)
    return [
        Quotation(
            text, index, strips[index]["score"] or -1.0, _place(strips[index]), _span(strips[index])
        )
        for text, index in sorted(chosen.items(), key=lambda one: one[1])
    ]


def on_few_lines(text: str) -> str:
    """Join the lines of each paragraph of prose; lists, tables and code keep theirs."""
    if _BLOCK.search(text):
        return text.strip()
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip()))


def _odds(strip: Strip) -> float:
    score = -1.0 if strip["score"] is None else strip["score"]
    return 2 * math.atanh(max(-_CERTAIN, min(_CERTAIN, score)))


def _place(strip: Strip) -> tuple[int, int]:
    text = strip["text"]
    return len(text) - len(text.lstrip()), len(text.rstrip())


def _span(strip: Strip) -> tuple[int, int] | None:
    """Return where the answer stands, if that is likelier than that the strip holds none."""
    span = strip["reading"]["span"]
    return (span["start"], span["end"]) if span is not None and span["score"] > 0 else None

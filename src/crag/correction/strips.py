"""Decompose, filter, recompose: the pure part of knowledge refinement (CRAG, Sec. 4.4)."""

import math
from collections.abc import Sequence

from crag.state import Strip
from crag.text.units import units_of

STRIPS_KEPT = 5
"""The paper's top-k of strips that are scored alone (CRAG, App. B.2; official code)."""
FEWEST_WORDS = 4
"""Strips with fewer words score -1.0 without the evaluator (official code)."""


def decompose(text: str) -> list[str]:
    """Cut `text` into strips, in order, and lose none of it; white space gives none."""
    return [text[unit.start : unit.end] for unit in units_of(text)]


def choose(
    scores: Sequence[float], count: int, threshold: float | None = None
) -> list[tuple[bool, str]]:
    """Decide for each score whether its strip is kept, with the reason.

    Of the strips at or above the threshold the best `count` are kept. If none reaches it, the
    single best one is kept, so knowledge is never empty. Ties go to the earlier strip.
    """
    ranking = sorted(range(len(scores)), key=lambda index: -scores[index])
    passing = [i for i in ranking if threshold is None or scores[i] >= threshold]
    kept = set(passing[:count] or ranking[:1])
    return [
        (index in kept, _reason(index in kept, score, threshold, count))
        for index, score in enumerate(scores)
    ]


def score_of(strip: Strip) -> float:
    """Return the score of a strip; one that was not scored ranks below all others."""
    return -math.inf if strip["score"] is None else strip["score"]


def recompose(strips: Sequence[Strip]) -> list[Strip]:
    """Return the kept strips, in their order."""
    return [strip for strip in strips if strip["kept"]]


SEPARATOR = " [sep] "
"""Between the knowledge from documents and from the web (official code)."""
_FIRST, _SECOND = "Knowledge1: ", "Knowledge2: "


def joint_text(internal: str, external: str) -> str:
    """Write both kinds of knowledge as one text, as the official program that joins them does.

    One kind alone is written without names; the official program leaves the other one empty.
    """
    if internal and external:
        return f"{_FIRST}{internal}{SEPARATOR}{_SECOND}{external}"
    return internal or external


def _reason(kept: bool, score: float, threshold: float | None, limit: int) -> str:
    passes = threshold is None or score >= threshold
    if kept:
        return "among the best" if passes else "best of those below the strip threshold"
    return f"not among the best {limit}" if passes else f"below the strip threshold {threshold:g}"

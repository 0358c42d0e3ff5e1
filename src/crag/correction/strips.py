"""Decompose, filter, recompose: the pure part of knowledge refinement (CRAG, Sec. 4.4)."""

import math
from collections.abc import Sequence

from crag.parts import Passage
from crag.settings import Settings
from crag.state import Strip
from crag.text.units import units_of
from crag.text.words import word_count

STRIPS_KEPT = 5
"""The paper's top-k of strips that are scored alone (CRAG, App. B.2; official code)."""
FEWEST_WORDS = 4
"""Strips with fewer words score -1.0 without the evaluator (official code)."""
_TITLE_END = " // "
LOWEST = -1.0
"""The score of an empty text, of a strip under four words, and of a text that could not be scored
(official code)."""


def decompose(text: str) -> list[str]:
    """Cut `text` into strips, in order, and lose none of it; white space gives none."""
    return [text[unit.start : unit.end] for unit in units_of(text)]


def score_of(strip: Strip) -> float:
    """Return the score of a strip; one that was not scored ranks below all others."""
    return -math.inf if strip["score"] is None else strip["score"]


def kept_best(strips: Sequence[Strip], count: int, threshold: float | None = None) -> list[Strip]:
    """Say of each scored strip whether it is kept, and why.

    Of the strips at or above the threshold the best `count` are kept. If none reaches it, the
    single best one is kept, so knowledge is never empty. Ties go to the earlier strip.
    """
    least = -math.inf if threshold is None else threshold
    ranking = sorted(range(len(strips)), key=lambda at: -score_of(strips[at]))
    passing = [at for at in ranking if score_of(strips[at]) >= least]
    kept = set(passing[:count] or ranking[:1])

    def reason(at: int) -> str:
        passes = score_of(strips[at]) >= least
        if at in kept:
            return "among the best" if passes else "best of those below the strip threshold"
        return f"not among the best {count}" if passes else f"below the strip threshold {least:g}"

    judged: list[Strip] = [
        {**strip, "kept": at in kept, "reason": reason(at)} for at, strip in enumerate(strips)
    ]
    for strip in judged:
        if not strip["kept"]:
            strip.pop("reading", None)  # Nobody asks for it again.
    return judged


def recompose(strips: Sequence[Strip]) -> list[Strip]:
    """Return the kept strips, in their order."""
    return [strip for strip in strips if strip["kept"]]


def joint_text(internal: str, external: str) -> str:
    """Write both kinds of knowledge as one text, as the official program that joins them does.

    One kind alone is written without names; the official program leaves the other one empty.
    """
    if internal and external:
        return f"Knowledge1: {internal} [sep] Knowledge2: {external}"
    return internal or external


def with_title(title: str, text: str) -> str:
    """Return a passage as the one string that the paper's evaluator reads: ``title // text``."""
    return f"{title}{_TITLE_END}{text}" if title and text.strip() else text


def split_title(text: str) -> Passage:
    """Read a string that `with_title` wrote: what stands before the first `` // `` is the title.

    This is for callers of `Evaluator.score` alone. An untitled text with `` // `` in it is misread,
    so give passages wherever the title is known.
    """
    title, _, rest = text.partition(_TITLE_END)
    return Passage(title, rest) if title and rest.strip() else Passage("", text)


def joined(question: str, text: str) -> str:
    """Return the input of the paper's evaluator; ``[SEP]`` is not a token of T5."""
    return f"{question} [SEP] {text}"


def strip_passage(strip: Strip, settings: Settings) -> Passage:
    """Return a strip as it is scored; one that is too short to be is empty."""
    title, text = strip["source"]["title"], strip["text"]
    if word_count(text) < FEWEST_WORDS:
        return Passage("", "")
    return Passage(title if settings.variant.titles == "every_strip" else "", text)

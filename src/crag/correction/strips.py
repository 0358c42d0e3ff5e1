"""Decompose, filter, recompose: the pure part of knowledge refinement (CRAG, Sec. 4.4)."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from crag.settings import Decomposition, Settings
from crag.state import Strip
from crag.text.units import SENTENCES_PER_STRIP, units_of
from crag.text.untrusted import neutral

FIXED_WORDS, SHORTEST_REMAINDER = 50, 10
EXCERPT_MINIMUM_WORDS = 5
_BREAKS = re.compile(r"[\n\t]")
STRIPS_KEPT = 5
"""The paper's top-k of strips that are scored alone (CRAG, App. B.2; official code)."""
FEWEST_WORDS = 4
"""Strips with fewer words score -1.0 without the evaluator (official code)."""


def decompose(text: str, mode: Decomposition = "sentences") -> list[str]:
    """Cut `text` into strips, in order; white space gives none.

    `sentences` and windows of words lose no text: the joined strips equal `text` up to white space.
    """
    if not text.strip():
        return []
    match mode:
        case "sentences":
            return [text[unit.start : unit.end] for unit in units_of(text)]
        case "selection":
            return [_BREAKS.sub(" ", text).strip()]
        case "excerption":
            return _excerption(text)
        case "fixed_num":
            return _fixed_windows(_BREAKS.sub(" ", text).strip())
        case "fixed_num_spaced":
            return _fixed_windows(_BREAKS.sub(" ", text))


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


def recompose(strips: Sequence[Strip], settings: Settings) -> list[Strip]:
    """Return the kept strips in the order that `settings.variant.strip_order` names."""
    kept = [strip for strip in strips if strip["kept"]]
    if settings.variant.strip_order == "score":
        kept.sort(key=score_of, reverse=True)
    return kept


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


_JOINT = re.compile(r"(knowledge1: .*?)( \[sep\] knowledge2:)", re.IGNORECASE | re.DOTALL)


def neutral_knowledge(text: str) -> str:
    """Disarm a text as `neutral` does, except for the separator of joint knowledge.

    Published knowledge files have it too, for biographies with small letters. Only the first one
    counts, and only in a text that begins as joint knowledge does, so that a page cannot set one
    within its own text.
    """
    joint = _JOINT.match(text)
    if joint:
        return neutral(joint[1]) + joint[2] + neutral(text[joint.end() :])
    return neutral(text)


def _groups(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _excerption(text: str) -> list[str]:
    """Cut as the official `excerption` does, which drops delimiters.

    A piece that equals an entry, short ones glued to it included, is skipped; the first piece is an
    entry even if it is empty. Line breaks and tabs are spaces, as the official reader leaves them.
    """
    entries: list[str] = []
    known = Counter[str]()
    pieces = [piece for part in _BREAKS.sub(" ", text).split("?") for piece in part.split(". ")]
    for piece in pieces:
        if known[piece]:
            continue
        if not entries or len(piece.split()) > EXCERPT_MINIMUM_WORDS:
            entries.append(piece)
        else:
            known[entries[-1]] -= 1
            entries[-1] += piece
        known[entries[-1]] += 1
    strips = (" ".join(group) for group in _groups(entries, SENTENCES_PER_STRIP))
    return [strip for strip in strips if strip.strip()]


def as_split(text: str, index: int, count: int) -> str:
    """Return a passage with the spaces that the official reader leaves around it.

    It splits passages at ``[sep]`` without stripping them, so that all but the first one begin with
    a space, and all but the last one end with one.
    """
    return f"{' ' if index else ''}{text}{' ' if index < count - 1 else ''}"


def _fixed_windows(text: str) -> list[str]:
    """Cut into windows of 50 words; fewer than 10 remaining words join the last window.

    As in the official code a word is what stands between two spaces, if it is nothing too.
    """
    windows = list(_groups(text.split(" "), FIXED_WORDS))
    if len(windows) > 1 and len(windows[-1]) < SHORTEST_REMAINDER:
        remainder = windows.pop()
        windows[-1] = [*windows[-1], *remainder]
    return [strip for window in windows if (strip := " ".join(window)).strip()]


def _reason(kept: bool, score: float, threshold: float | None, limit: int) -> str:
    passes = threshold is None or score >= threshold
    if kept:
        return "among the best" if passes else "best of those below the strip threshold"
    return f"not among the best {limit}" if passes else f"below the strip threshold {threshold:g}"

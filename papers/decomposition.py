"""The official programs' ways to cut passages into strips (CRAG, App. B.2)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from crag.correction import strips
from crag.text.units import SENTENCES_PER_STRIP

Decomposition = Literal["sentences", "selection", "excerption", "fixed_num", "fixed_num_spaced"]
FIXED_WORDS, SHORTEST_REMAINDER = 50, 10
EXCERPT_MINIMUM_WORDS = 5
_BREAKS = re.compile(r"[\n\t]")


def decompose(text: str, mode: Decomposition) -> list[str]:
    """Cut `text` into strips, in order; white space gives none."""
    if not text.strip():
        return []
    match mode:
        case "sentences":
            return strips.decompose(text)
        case "selection":
            return [_BREAKS.sub(" ", text).strip()]
        case "excerption":
            return _excerption(text)
        case "fixed_num":
            return _fixed_windows(_BREAKS.sub(" ", text).strip())
        case "fixed_num_spaced":
            return _fixed_windows(_BREAKS.sub(" ", text))


def as_split(text: str, index: int, count: int) -> str:
    """Return a passage with the spaces that the official reader leaves around it.

    It splits passages at ``[sep]`` without stripping them, so that all but the first one begin with
    a space, and all but the last one end with one.
    """
    return f"{' ' if index else ''}{text}{' ' if index < count - 1 else ''}"


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


def _fixed_windows(text: str) -> list[str]:
    """Cut into windows of 50 words; fewer than 10 remaining words join the last window.

    As in the official code a word is what stands between two spaces, if it is nothing too.
    """
    windows = list(_groups(text.split(" "), FIXED_WORDS))
    if len(windows) > 1 and len(windows[-1]) < SHORTEST_REMAINDER:
        remainder = windows.pop()
        windows[-1] = [*windows[-1], *remainder]
    return [strip for window in windows if (strip := " ".join(window)).strip()]

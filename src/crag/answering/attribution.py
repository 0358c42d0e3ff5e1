"""From passages that were put together of strips back to the strips."""

import re
from collections.abc import Sequence

from crag.reflection.assembling import with_number
from crag.state import Citation, OfferedPassage, Source, Strip

_MARK = re.compile(r"\[(\d+)\]")
_WORD = re.compile(r"\w+")


def cited_whole(answer: str) -> str:
    """Let the whole answer cite the first passage."""
    return with_number(answer, 1)


def attributed(answer: str, passages: Sequence[OfferedPassage]) -> tuple[str, list[Citation]]:
    """Let each ``[n]`` cite a strip of ``passages[n - 1]``, and return the strips by number.

    It is the strip that shares most words with the text since the ``[n]`` before, the first of
    equals. Strips are numbered in the order in which they are cited. A mark without passage goes.
    """
    pieces = _MARK.split(answer)
    citations: list[Citation] = []
    for place in range(1, len(pieces), 2):
        number = int(pieces[place])
        pieces[place] = ""
        if 1 <= number <= len(passages):
            strip = _nearest(pieces[place - 1], passages[number - 1])
            pieces[place] = f"[{_number(strip, citations)}]"
    return "".join(pieces), citations


def numbered_passages(passages: Sequence[OfferedPassage]) -> list[Citation]:
    """Return whole passages as citations, numbered in order."""
    return [
        Citation(number=number, text=passage["text"], source=_strips(passage)[0]["source"])
        for number, passage in enumerate(passages, start=1)
    ]


def _nearest(text: str, passage: OfferedPassage) -> Strip:
    said = _words(text)
    return max(_strips(passage), key=lambda strip: len(said & _words(strip["text"])))


def _number(strip: Strip, citations: list[Citation]) -> int:
    for citation in citations:
        if (citation["text"], citation["source"]) == (strip["text"], strip["source"]):
            return citation["number"]
    number = len(citations) + 1
    citations.append(Citation(number=number, text=strip["text"], source=strip["source"]))
    return number


def _strips(passage: OfferedPassage) -> list[Strip]:
    """Return the strips of a passage; one that came without any is its own."""
    source = Source(id=passage["title"], title=passage["title"], url="", position="")
    own = Strip(text=passage["text"], source=source, score=None, kept=True, reason="")
    return passage.get("strips") or [own]


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}

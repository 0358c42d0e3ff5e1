"""Citations of an answer: validation against the strips, and attribution of passages to strips.

A citation or link without a source is removed and reported. An answer that cites whole passages, as
reflection writes them, is made to cite the strips that the passages consist of.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crag.answering.links import without_links
from crag.answering.markdown import prose_and_code
from crag.state import Citation, OfferedPassage, Source, Strip

_MARK = re.compile(r"(?:(?<!\s)\s+)?\[(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\]")
_PASSAGE_MARK = re.compile(r"\[(\d+)\]")
_WORD = re.compile(r"\w+")
_ROUNDS = 3
_MOST_DIGITS = 10
_AFTER = ".,;:!?"
_GONE = "(link removed)"
_SENTENCE_ENDS = ".!?…。！？"


class Validated(NamedTuple):
    """An answer whose every citation refers to a strip."""

    answer: str
    citations: list[Citation]
    """Those the answer refers to, by number."""
    removed: list[int]
    """Numbers that referred to nothing, in the order of the text."""
    links: list[str]
    """Addresses that were removed: those that occur in no strip, and those of pictures."""


def validate(answer: str, available: Sequence[Citation]) -> Validated:
    """Remove the citations of `answer` whose number is not `available`; code is not changed.

    Links are removed as `without_links` says. What is left when a citation goes could be a link, so
    the answer is looked at again.
    """
    known = {citation["number"]: citation for citation in available}
    used: set[int] = set()
    removed: list[int] = []

    def check(mark: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", mark[1])]
        valid = [number for number in numbers if number in known]
        used.update(valid)
        removed.extend(number for number in numbers if number not in known)
        if len(valid) == len(numbers):
            return mark[0]
        leading = mark[0][: mark[0].index("[")]
        return leading + f"[{', '.join(map(str, valid))}]" if valid else ""

    answer, links = without_links(answer, available)
    for _ in range(_ROUNDS):
        used.clear()
        pieces = prose_and_code(answer)
        pieces[::2] = [_MARK.sub(check, prose) for prose in pieces[::2]]
        cited = "".join(pieces)
        if cited == answer:
            break
        answer, more = without_links(cited, available)
        links += more
    return Validated(answer, [known[n] for n in sorted(used)], removed, links)


def with_number(text: str, number: int | None) -> str:
    """Insert ``[number]`` before the punctuation that ends a sentence; None changes nothing."""
    if number is None:
        return text
    place = before_end(text)
    return f"{text[:place]} [{number}]{text[place:]}"


def before_end(text: str) -> int:
    """Return where the punctuation that ends a sentence begins, and a number is inserted."""
    return len(text.rstrip(_SENTENCE_ENDS))


class Mark(NamedTuple):
    """One ``[n]`` or ``[n, m]`` of an answer."""

    start: int
    """Of the bracket, or of the white space before it."""
    bracket: int
    end: int
    numbers: list[int]


def marks_in(answer: str) -> Iterator[Mark]:
    """Find the citations of an answer from left to right; those in code are none."""
    at = 0
    for place, piece in enumerate(prose_and_code(answer)):
        for found in _MARK.finditer(piece) if place % 2 == 0 else ():
            start, bracket = at + found.start(), at + found.start() + found[0].index("[")
            numbers = [int(number) for number in re.findall(r"\d+", found[1])]
            yield Mark(start, bracket, at + found.end(), numbers)
        at += len(piece)


def renumbered(answer: str, numbers: Mapping[int, int]) -> str:
    """Replace the numbers of citations by others; code, and numbers without another one, stay."""

    def replace(mark: re.Match[str]) -> str:
        before, _, marked = mark[0].partition("[")
        return f"{before}[" + re.sub(
            r"\d+", lambda number: str(numbers.get(int(number[0]), int(number[0]))), marked
        )

    pieces = prose_and_code(answer)
    pieces[::2] = [_MARK.sub(replace, prose) for prose in pieces[::2]]
    return "".join(pieces)


def without_citations(answer: str) -> str:
    """Return an answer without its ``[n]``; code is not changed."""
    pieces = prose_and_code(answer)
    pieces[::2] = [_MARK.sub("", prose) for prose in pieces[::2]]
    return "".join(pieces)


def attributed(answer: str, passages: Sequence[OfferedPassage]) -> tuple[str, list[Citation]]:
    """Replace each ``[n]``, which cites ``passages[n - 1]``, by the number of one of its strips.

    The strip is the one that shares most words with the text since the previous mark, the first of
    equals. Strips are numbered in the order in which they are cited, and returned in that order. A
    mark that refers to no passage is removed.
    """
    pieces = _PASSAGE_MARK.split(answer)
    citations: list[Citation] = []
    for place in range(1, len(pieces), 2):
        # Python reads no number of thousands of digits.
        number = int(pieces[place]) if len(pieces[place]) < _MOST_DIGITS else 0
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
    """Return the strips of a passage; one without strips counts as a strip itself."""
    source = Source(id=passage["title"], title=passage["title"], url="", position="")
    own = Strip(text=passage["text"], source=source, score=None, kept=True, reason="")
    return passage.get("strips") or [own]


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}

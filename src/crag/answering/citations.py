"""Citations of an answer: validation against the strips, and attribution of passages to strips.

A citation or link without a source is removed and reported. An answer that cites whole passages, as
reflection writes them, is made to cite the strips that the passages consist of.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from crag.answering.links import prose_and_code, without_links
from crag.state import Citation, OfferedPassage, Source, Strip
from crag.text.marks import PATTERN, Mark, as_mark, in_our_format, marks_of, with_numbers
from crag.text.words import words

_ROUNDS = 3
"""The most times that an answer is validated again, after a removal may have formed a new link."""
_SENTENCE_ENDS = ".!?…。！？"
_WORDLESS = re.compile(
    r"</?passage\b[^<>]{0,200}>|\b(?:numbers?|passages?|sources?)[\s:=#\"]{0,9}\d{1,4}\b|"
    r"[(#]\d{1,4}\b|\b(?:and|passages?|sources?|citations?)\b|[\W_]",
    re.IGNORECASE,
)
"""What an answer without words may consist of, besides citations."""


class Validated(NamedTuple):
    """An answer whose every citation refers to a strip."""

    answer: str
    removed: list[int]
    """Numbers that referred to nothing, in the order of the text."""
    links: list[str]
    """Addresses that were removed: those that occur in no strip, and those of pictures."""


def validate(answer: str, available: Sequence[Citation]) -> Validated:
    """Remove the citations of `answer` whose number is not `available`; code is not changed.

    Those that name what they cite, such as ``[Passage 4]``, become numbers alone. Links are removed
    as `without_links` says. What is left when a citation goes could be a link, so the answer is
    looked at again.
    """
    known = {citation["number"] for citation in available}
    removed: list[int] = []

    def valid(numbers: Sequence[int]) -> list[int]:
        removed.extend(number for number in numbers if number not in known)
        return [number for number in numbers if number in known]

    answer = _in_prose(answer, lambda prose: in_our_format(prose, known))
    answer, links = without_links(answer, available)
    for _ in range(_ROUNDS):
        cited = _in_prose(answer, lambda prose: with_numbers(prose, valid))
        if cited == answer:
            break
        answer, more = without_links(cited, available)
        links += more
    return Validated(answer, removed, links)


def with_number(text: str, number: int | None) -> str:
    """Insert a mark before the punctuation that ends a sentence; None changes nothing."""
    if number is None:
        return text
    place = before_end(text)
    return f"{text[:place]} {as_mark(number)}{text[place:]}"


def before_end(text: str) -> int:
    """Return where the punctuation that ends a sentence begins, and a number is inserted."""
    return len(text.rstrip(_SENTENCE_ENDS).rstrip())


def marks_in(answer: str) -> Iterator[Mark]:
    """Find the citations of an answer from left to right; those in code are none."""
    at = 0
    for place, piece in enumerate(prose_and_code(answer)):
        for start, bracket, end, numbers in marks_of(piece) if place % 2 == 0 else ():
            yield Mark(at + start, at + bracket, at + end, numbers)
        at += len(piece)


def without_citations(answer: str) -> str:
    """Return an answer without its marks; code is not changed."""
    return _in_prose(answer, lambda prose: with_numbers(prose, lambda _: ()))


def blanked(answer: str) -> str:
    """Return an answer with as many blanks for its marks, and for code of several lines."""
    pieces = prose_and_code(answer)
    pieces[::2] = [re.sub(PATTERN, lambda mark: " " * len(mark[0]), one) for one in pieces[::2]]
    pieces[1::2] = ["\n" * len(code) if "\n" in code else code for code in pieces[1::2]]
    return "".join(pieces)


def is_wordless(answer: str) -> bool:
    """Return whether an answer consists of citations, marks and punctuation only, without code."""
    said = without_citations(answer)
    return "`" not in said and not _WORDLESS.sub("", said)


def why_empty(answer: str) -> str:
    """Return what is wrong with an answer that says nothing, and "" for one that says something.

    It has no words, or ends where it should begin ("Use this command:").
    """
    if is_wordless(answer):
        return "wrote no words"
    said = without_citations(in_our_format(answer)).rstrip()
    return "announced an answer and gave none" if said.endswith(":") else ""


def attributed(answer: str, passages: Sequence[OfferedPassage]) -> tuple[str, list[Citation]]:
    """Replace each number, which cites ``passages[n - 1]``, by the number of one of its strips.

    The strip is the one that shares most words with the text since the previous mark, the first of
    equals. Strips are numbered in the order in which they are cited, and returned in that order. A
    number that refers to no passage is removed.
    """
    cited: list[tuple[str, Source]] = []
    pieces, end = list[str](), 0
    for mark in marks_of(answer):
        said, end = answer[end : mark.bracket], mark.end
        numbers: list[int] = []
        for number in mark.numbers:
            if 1 <= number <= len(passages):
                strip = _nearest(said, passages[number - 1])
                place = strip["text"], strip["source"]
                cited += [] if place in cited else [place]
                numbers.append(cited.index(place) + 1)
        pieces += [said, as_mark(*numbers) if numbers else ""]
    citations = [
        Citation(number=number, text=text, source=source)
        for number, (text, source) in enumerate(cited, start=1)
    ]
    return "".join([*pieces, answer[end:]]), citations


def numbered_passages(passages: Sequence[OfferedPassage], after: int = 0) -> list[Citation]:
    """Return whole passages as citations, numbered in order from the number `after` that."""
    return [
        Citation(number=number, text=passage["text"], source=strips_of(passage)[0]["source"])
        for number, passage in enumerate(passages, start=after + 1)
    ]


def strips_of(passage: OfferedPassage) -> list[Strip]:
    """Return the strips of a passage; one without strips counts as a strip itself."""
    source = Source(id=passage["title"], title=passage["title"], url="", position="")
    own = Strip(
        text=passage["text"], kind="document", source=source, score=None, kept=True, reason=""
    )
    return passage.get("strips") or [own]


def _in_prose(answer: str, change: Callable[[str], str]) -> str:
    """Change an answer, but not its code."""
    pieces = prose_and_code(answer)
    pieces[::2] = map(change, pieces[::2])
    return "".join(pieces)


def _nearest(text: str, passage: OfferedPassage) -> Strip:
    said = {*words(text)}
    return max(strips_of(passage), key=lambda strip: len(said & {*words(strip["text"])}))

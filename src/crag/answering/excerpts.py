"""Cut out of a strip what is to be read together around the answer, and write it as it is read.

That is the sentence, the items or rows, or the code where the answer stands, with the sentence that
leads a block in, the head of a table, and as many sentences around as fit.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from operator import attrgetter
from textwrap import dedent
from typing import Final, NamedTuple

from crag.text.units import Part, heading_words, is_rule, leads_in, leans, parts_of
from crag.text.words import words

MOST_WORDS: Final = 60
"""Words of a quotation; a block is never cut."""
MOST_WORDS_WITH_BLOCK: Final = 90
"""Words of a quotation that a table, or a list with the sentence that leads it in, makes longer."""
_MOST_OF_ITEM: Final = 14
"""Words of a paragraph that may be one of a list, such as an error and what it means."""
NAMES_ONE: Final = 2.0
"""Log-odds by which a part that has a name of the question leads one that lacks it."""
_LABEL = re.compile(
    r"(?:\|\s*|[-*+•‣–]\s+|\d{1,3}[.)]\s+)([^:|\n]{1,80})[:|\n]|([^:|\n.]{1,60}):\s"
)
_FEWEST_ALONE: Final = 3
"""Words up to which a quotation is not understood without its heading, such as "Yes."."""
_MARK = re.compile(r"\A\s*[-*+•‣–][ \t]+")
_LISTED = re.compile(r"\s*(?:[-*+•‣–]|\d{1,3}[.)])[ \t]")
_SOFT_BREAK = re.compile(r"(?<=\S)\n[ \t]*(?=\S)")
_LEFT_OUT = "…"


class ParsedStrip(NamedTuple):
    """A strip, taken apart."""

    text: str
    """With what stands before it."""
    own: int
    """Where the strip itself begins."""
    parts: list[Part]
    """Without headings."""
    headings: list[list[str]]
    """Those above each part."""

    def said(self, low: int, high: int | None = None) -> str:
        """Return the text of a part, or of several."""
        return self.text[self.parts[low].start : self.parts[low if high is None else high].end]

    def size(self, low: int, high: int) -> int:
        """Return how many words parts have."""
        return len(self.said(low, high).split())

    def leads(self, at: int) -> bool:
        """Return whether a part is the sentence that leads the next one in."""
        if not 0 <= at < len(self.parts) - 1 or self.parts[at].kind != "sentence":
            return False
        after = self.parts[at + 1].kind
        return after == "code" or (after != "sentence" and leads_in(self.said(at)))

    def label(self, at: int) -> str:
        """Return what a part is about: its question, a term before a colon, or the first cell.

        A line of a list that has no marks, such as of telephones, is about all that it says.
        """
        first, said = self.said(self.block(at)[0]), self.said(at)
        if first.endswith("?"):
            return first
        begins = not self.text[: self.parts[at].start].rpartition("\n")[2].strip()  # Not "Note:".
        if begins and (found := _LABEL.match(said)):
            return found[1] or found[2]
        return said if self.parts[at].kind == "item" and not _LISTED.match(said) else ""

    def told(self, at: int) -> tuple[str, str]:
        """Return what says what a part is about, and the part; a row below the head of its table.

        That is its headings, the sentence that leads its block in, and its label.
        """
        lead = self.block(at)[0] - 1
        leads = [self.said(lead)] if self.leads(lead) else []
        about = "\n".join([*self.headings[at], *leads, self.label(at)])
        return about, "\n".join(map(self.said, [*self.head(at), at]))

    def block(self, at: int) -> Sequence[int]:
        """Return the parts of the block that a part is of."""
        number, number_of = self.parts[at].block, attrgetter("block")
        first = bisect_left(self.parts, number, key=number_of)
        return range(first, bisect_right(self.parts, number, key=number_of))

    def is_short(self, at: int) -> bool:
        """Return whether a part is in a short paragraph, which may be one of a list of things."""
        block = self.block(at)
        is_prose = self.parts[at].kind == "sentence"
        return is_prose and self.size(block[0], block[-1]) <= _MOST_OF_ITEM

    def item(self, at: int) -> Sequence[int]:
        """Return the parts of the short paragraph that a part is in, else the part alone."""
        return self.block(at) if self.is_short(at) else [at]

    def fellows(self, at: int) -> Sequence[int]:
        """Return the parts of all items of the list or table that a part is in, if it is in one."""
        kind = self.parts[at].kind
        if kind == "sentence":
            return list(filter(self.is_short, range(len(self.parts)))) if self.is_short(at) else []
        return self.block(at) if kind == "row" or self.label(at) else []

    def head(self, at: int) -> Sequence[int]:
        """Return the rows of the head of the table that a row is in, if it has rows below."""
        block = self.block(at)
        has_rule = len(block) > 2 and is_rule(self.said(block[1]))  # noqa: PLR2004
        return block[:2] if has_rule else []


def parsed_strip(text: str, before: str = "", headings: Sequence[str] = ()) -> ParsedStrip:
    """Take a strip apart that stands below headings, and after what it needs to be read."""
    parsed = ParsedStrip(before + text, len(before), [], [])
    path: list[tuple[int, str]] = []
    for part in parts_of(parsed.text):
        if part.kind == "heading":
            path = [above for above in path if above[0] < part.level]
            path.append((part.level, heading_words(parsed.text[part.start : part.end])))
        else:
            parsed.parts.append(part)
            names = [*headings, *(name for _, name in path)]
            parsed.headings.append(list(dict.fromkeys(names)))
    return parsed


def excerpt(
    parsed: ParsedStrip, at: int, named: Mapping[int, float], *, leads: bool = False
) -> tuple[int, int]:
    """Return the first and last part to quote around one, by what each loses for its names.

    A block is quoted whole, if it has room, unless one of its items or rows is what was asked for.
    With `leads` the part stands first, unless it is a sentence that refers to the one before.
    """
    low, high = _whole(parsed, at)
    block, own, fellows = {*parsed.block(at)}, parsed.item(at), parsed.fellows(at)
    others = {
        n
        for n, odds in named.items()
        if odds <= named[at] - NAMES_ONE and n not in own and (n in fellows or parsed.label(n))
    }
    near, kind = named.keys() - others, parsed.parts[at].kind
    is_long = parsed.size(low, high) > MOST_WORDS_WITH_BLOCK
    is_cut = kind in {"item", "row"} and (leads or is_long or not block.isdisjoint(others))
    if is_cut:
        low, high, near = at, at, near & block
    if leads and not (kind == "sentence" and leans(parsed.said(at))):
        near = {n for n in near if n >= low}
    for step in (-1, 1) if is_cut else (1, -1):
        while (n := (low if step < 0 else high) + step) in near:
            first, last = (n, n) if is_cut else _whole(parsed, n)
            first, last = min(low, first), max(high, last)
            kinds = {parsed.parts[first].kind, parsed.parts[last].kind}
            most = MOST_WORDS if is_cut or kinds == {"sentence"} else MOST_WORDS_WITH_BLOCK
            if not {first, last} <= near or parsed.size(first, last) > most:
                break
            low, high = first, last
    return low, high


def _whole(parsed: ParsedStrip, at: int) -> tuple[int, int]:
    """Return a sentence, or a block with the sentence that leads it in."""
    if parsed.parts[at].kind == "sentence" and not parsed.leads(at):
        return at, at
    block = parsed.block(at + parsed.leads(at))
    return block[0] - parsed.leads(block[0] - 1), block[-1]


def written(parsed: ParsedStrip, low: int, high: int) -> str:
    """Write parts as they are read: with their head or lead-in, and a mark for items left out."""
    text, kind, block = parsed.said(low, high), parsed.parts[low].kind, parsed.block(low)
    last = parsed.parts[high].kind
    if kind == last == "sentence":
        return _SOFT_BREAK.sub(" ", text)
    if kind == "row":
        return "\n".join([*(parsed.said(n) for n in parsed.head(low) if n < low), text])
    text = dedent(text)
    if last == "item" and "\n" in text and high < parsed.block(high)[-1]:
        text = f"{text}\n{_LEFT_OUT}"
    if kind == "item" and parsed.leads(block[0] - 1):
        gap = _LEFT_OUT if low > block[0] or parsed.own else ""
        return f"{parsed.said(block[0] - 1)}\n{gap}\n{text}"
    if kind == "item" and low == high:
        return dedent(_MARK.sub(lambda mark: " " * len(mark[0]), text, count=1))
    fence = parsed.said(high).lstrip()[:3]
    return f"{text}\n{fence}" if last == "code" and text.count(fence) % 2 else text


def subject_of(parsed: ParsedStrip, low: int, text: str, asked: set[str]) -> str:
    """Return the headings that name the subject of a quotation that does not, as ``Use > Install``.

    Each names something asked that neither the text does nor the headings below it.
    """
    headings, lacking, named = parsed.headings[low], asked.difference(words(text)), list[str]()
    for name in reversed(headings):
        if not lacking.isdisjoint(words(name)):
            named, lacking = [name, *named], lacking.difference(words(name))
    is_alone = parsed.parts[low].kind != "sentence" or len(text.split()) <= _FEWEST_ALONE
    heading = " > ".join(named or (headings[-1:] if is_alone else []))
    return f"{heading}:" if heading and not heading.endswith(("?", "!", ".", ":")) else heading

"""Cut out of a strip what is to be read together around the answer, and write it as it is read.

That is the sentence, the items or rows, or the code where the answer stands, with the sentence that
leads a block in, the head of a table, and as many sentences around as fit.
"""

import re
from textwrap import dedent
from typing import Final, NamedTuple

from crag.state import Strip
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
_FEWEST_ALONE: Final = 3
"""Words up to which a quotation is not understood without its heading, such as "Yes."."""
_MARK = re.compile(r"[ \t]*[-*+•‣–][ \t]+")
_LABEL = re.compile(
    r"(?:\|\s*|[-*+•‣–]\s+|\d{1,3}[.)]\s+)([^:|\n]{1,80})[:|\n]|([^:|\n.]{1,60}):\s"
)
_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
_SOFT_BREAK = re.compile(r"(?<! {2})\n[ \t]*|(?<=  )\n[ \t]+")
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
        """Return what a part says that it is about: a term before a colon, or the first cell."""
        begins = not self.text[: self.parts[at].start].rpartition("\n")[2].strip()
        found = _LABEL.match(self.said(at)) if begins else None
        return (found[1] or found[2]) if found else ""

    def block(self, at: int) -> list[int]:
        """Return the parts of the block that a part is of."""
        number = self.parts[at].block
        return [n for n, part in enumerate(self.parts) if part.block == number]

    def item(self, at: int) -> list[int]:
        """Return the parts of the item of a list that a part is in, if it is in one.

        That is a row, an item with a label, or one of several short paragraphs.
        """
        if self.parts[at].kind != "sentence":
            return [at] if self.parts[at].kind == "row" or self.label(at) else []
        block = self.block(at)
        return block if self.size(block[0], block[-1]) <= _MOST_OF_ITEM else []

    def fellows(self, at: int) -> list[int]:
        """Return the parts of all items of the list that a part is in, if it is in one."""
        if not self.item(at):
            return []
        if self.parts[at].kind != "sentence":
            return self.block(at)
        return [n for n, part in enumerate(self.parts) if part.kind == "sentence" and self.item(n)]

    def head(self, at: int) -> list[str]:
        """Return the rows of the head of the table that a row is below."""
        block = self.block(at)
        has_rule = len(block) > 2 and is_rule(self.said(block[1]))  # noqa: PLR2004
        return [self.said(n) for n in block[:2] if n < at] if has_rule else []

    def heads(self, at: int) -> bool:
        """Return whether a part is the head of a table that has rows below it."""
        block = self.block(at)
        return at in block[:2] and at != block[-1] and bool(self.head(block[-1]))


def parsed_strip(strip: Strip) -> ParsedStrip:
    """Take a strip apart."""
    before = strip.get("before", "")
    parsed = ParsedStrip(before + strip["text"], len(before), [], [])
    path: list[tuple[int, str]] = []
    for part in parts_of(parsed.text):
        if part.kind == "heading":
            path = [above for above in path if above[0] < part.level]
            path.append((part.level, heading_words(parsed.text[part.start : part.end])))
        else:
            parsed.parts.append(part)
            names = [*strip.get("headings", ()), *(name for _, name in path)]
            parsed.headings.append(list(dict.fromkeys(names)))
    return parsed


def excerpt(
    parsed: ParsedStrip, at: int, named: dict[int, float], *, leads: bool = False
) -> tuple[int, int]:
    """Return the first and last part to quote around one.

    A block is quoted whole, if it has room, unless one of its items or rows is what was asked for.
    With `leads` a sentence stands first, unless it refers to the one before.
    """
    parts, block = parsed.parts, [n for n in parsed.block(at) if n in named]
    names_one = parsed.label(at) and named[at] - min(named[n] for n in block) >= NAMES_ONE
    is_block = parts[at].kind in {"item", "row"}
    low, high = _whole(parsed, at)
    if is_block and (names_one or parsed.size(low, high) > MOST_WORDS_WITH_BLOCK):
        near = {n for n in block if named[n] > named[at] - NAMES_ONE}
        return _grown(parsed, (at, at), near)
    own, fellows = parsed.item(at), parsed.fellows(at)
    near = {
        n
        for n, odds in named.items()
        if parsed.headings[n] == parsed.headings[at]
        if parts[n].kind != parts[at].kind
        or n in own
        or not (odds <= named[at] - NAMES_ONE and (parsed.label(n) or n in fellows))
    }
    if leads and parts[at].kind == "sentence" and not leans(parsed.said(at)):
        near = {n for n in near if n >= low}
    return _grown(parsed, (low, high), near)


def _whole(parsed: ParsedStrip, at: int) -> tuple[int, int]:
    """Return a sentence, or a block with the sentence that leads it in."""
    if parsed.parts[at].kind == "sentence" and not parsed.leads(at):
        return at, at
    block = parsed.block(at + parsed.leads(at))
    return block[0] - parsed.leads(block[0] - 1), block[-1]


def _grown(parsed: ParsedStrip, place: tuple[int, int], near: set[int]) -> tuple[int, int]:
    """Take in what stands after and before a place, as much as has room."""
    low, high = place
    is_cut = parsed.parts[low].kind in {"item", "row"}
    while True:
        after = high + 1 if is_cut else _whole(parsed, high + 1)[1] if high + 1 in near else -1
        before = low - 1 if is_cut else _whole(parsed, low - 1)[0] if low - 1 in near else -1
        steps = [(low, after), (before, high)]
        for first, last in reversed(steps) if is_cut or leans(parsed.said(low)) else steps:
            if first not in near or last not in near:
                continue
            kinds = {parsed.parts[first].kind, parsed.parts[last].kind}
            most = MOST_WORDS if is_cut or kinds == {"sentence"} else MOST_WORDS_WITH_BLOCK
            if parsed.size(first, last) <= most:
                low, high = first, last
                break
        else:
            return low, high


def written(parsed: ParsedStrip, low: int, high: int) -> str:
    """Write parts as they are read: with their head or lead-in, and a mark for items left out."""
    text, first, block = parsed.said(low, high), parsed.parts[low], parsed.block(low)
    if first.kind == "sentence" and parsed.parts[high].kind == "sentence":
        return "\n\n".join(_SOFT_BREAK.sub(" ", one) for one in _PARAGRAPHS.split(text))
    line = parsed.text.rfind("\n", 0, first.start) + 1
    text = dedent(parsed.text[line : first.start] + text) if first.kind == "item" else text
    if first.kind == "row":
        text = "\n".join([*parsed.head(low), text])
    elif first.kind == "item" and parsed.leads(block[0] - 1):
        gap = _LEFT_OUT if low > block[0] or parsed.own else ""
        text = f"{parsed.said(block[0] - 1)}\n{gap}\n{text}"
    elif first.kind == "item" and low == high and (mark := _MARK.match(text)):
        text = dedent(" " * mark.end() + text[mark.end() :])
    if parsed.parts[high].kind == "code" and not _is_closed(parsed.said(high)):
        return f"{text.rstrip()}\n{parsed.said(high)[:3]}"
    is_cut = parsed.parts[high].kind == "item" and high < parsed.block(high)[-1]
    return f"{text}\n{_LEFT_OUT}" if is_cut and "\n" in text else text


def _is_closed(code: str) -> bool:
    return "\n" in code and code.rstrip().rpartition("\n")[2].strip().startswith(code[:3])


def subject_of(parsed: ParsedStrip, low: int, text: str, asked: frozenset[str]) -> str:
    """Return the heading that names the subject of a quotation that does not."""
    held, headings = frozenset(words(text)), parsed.headings[low]
    named = [name for name in headings if (asked - held) & frozenset(words(name))]
    is_first = low == next(n for n, part in enumerate(parsed.parts) if part.end > parsed.own)
    says_little = len(text.split()) <= _FEWEST_ALONE or text.startswith("(")
    is_block = parsed.parts[low].kind != "sentence" and is_first and not parsed.own
    heading = next(reversed(named or (headings if says_little or is_block else [])), "")
    return f"{heading}:" if heading and not heading.endswith(("?", "!", ".", ":")) else heading

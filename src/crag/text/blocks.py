"""What a reader sees of a document, as blocks, and their one Markdown, each line with its place.

Canonical Markdown: headings with `#`; a paragraph on one line, but for hard breaks; lists with `-`
or `1.`, what goes on in an item indented by the width of its mark; tables with a rule after the
head and one row a line, where merged cells repeat their value; code in fences; an empty line
between two blocks. Text is Markdown within the line: `**strong**`, `` `code` ``, `label (address)`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Kind = Literal["heading", "text", "list", "table", "code"]
HARD_BREAK = "  \n"
"""Ends a line within a text that stays a line of its own."""
_DEEPEST_HEADING = 6
_OPENS_BLOCK = re.compile(r"(?=(?:#{1,6}|[-+*]|[-=]{2,})(?:\s|$)|\||`{3}|~{3}|>)")
_OPENS_ITEM = re.compile(r"(\d{1,9})(?=[.)](?:\s|$))")
_OPENS_EMPHASIS = re.compile(
    r"(?<!\\)(?:(?<!\w)_{1,3}(?=\w(?:[^\n]{0,200}?\w)?_)"
    r"|\*{1,3}(?=[^\s*](?:[^\n]{0,200}?[^\s*])?\*))"
)
_ENDS = "?!.:;"
_FIELD = re.compile(r"\**(?P<label>[^\W\d_][^:\n*]{0,39}):\**\s+\S.{0,99}")
"""A label and what it labels, such as ``Name: Ada``."""
_TICKS = re.compile("`{3,}")


class Line(NamedTuple):
    """A line of canonical Markdown, and the first and last place that it comes from."""

    text: str
    first: int
    """Line, page, slide, paragraph or row of the file, from 1."""
    last: int


class Row(NamedTuple):
    """A row of a table, and its place."""

    cells: list[str]
    """Markdown of one line each."""
    first: int
    last: int


class Item(NamedTuple):
    """An item of a list."""

    mark: str
    """``-``, or a number with a full stop."""
    blocks: "list[Block]"


@dataclass
class Block:
    """A heading, a paragraph, a list, a table or code, and its place."""

    kind: Kind
    first: int
    """Of code, the place of its own first line, which follows that of a fence."""
    last: int
    text: str = ""
    """Of headings and text, Markdown of one line, but for hard breaks; of code, its lines."""
    level: int = 0
    """Of a heading, from 1."""
    info: str = ""
    """Of code, its language."""
    items: list[Item] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    """Of a table; the first one is its head."""


def lines_of(block: Block) -> Iterator[Line]:
    """Yield the canonical Markdown of a block."""
    first, last = block.first, block.last
    match block.kind:
        case "heading":
            marks = "#" * min(max(block.level, 1), _DEEPEST_HEADING)
            yield Line(f"{marks} {' '.join(block.text.split())}", first, last)
        case "text":
            texts = block.text.split("\n")
            are_lines = len(texts) == last - first + 1
            for at, text in enumerate(texts):
                place = (first + at,) * 2 if are_lines else (first, last)
                yield Line(_kept_as_text(text), *place)
        case "code":
            ticks = max(3, *(len(run[0]) + 1 for run in _TICKS.finditer(block.text)), 3) * "`"
            yield Line(f"{ticks}{block.info}", first, first)
            for at, text in enumerate(block.text.split("\n")):
                yield Line(text, *[min(first + at, last)] * 2)
            yield Line(ticks, last, last)
        case "table":
            yield from _lines_of_table(block.rows)
        case "list":
            for item in block.items:
                yield from lines_of_item(item)


def lines_of_item(item: Item) -> Iterator[Line]:
    """Yield the canonical Markdown of an item, its mark before it."""
    margin = " " * (len(item.mark) + 1)
    for number, block in enumerate(item.blocks):
        if number and block.kind != "list":
            yield Line("", block.first, block.first)
        for at, (text, first, last) in enumerate(lines_of(block)):
            before = margin if number or at else f"{item.mark} "
            yield Line(before + text if text else text, first, last)


def lines_of_all(blocks: Iterable[Block]) -> Iterator[Line]:
    """Yield the canonical Markdown of blocks, an empty line between two of them."""
    for number, block in enumerate(blocks):
        if number:
            yield Line("", block.first, block.first)
        yield from lines_of(block)


def text_of(blocks: Iterable[Block]) -> str:
    """Return the canonical Markdown of blocks."""
    return "\n".join(line.text for line in lines_of_all(blocks))


def escaped(text: str) -> str:
    r"""Return plain text as Markdown of a text: what would be emphasis gets backslashes.

    >>> escaped("see __init__ and 2*3*4, but snake_case")
    'see \\_\\_init__ and 2\\*3\\*4, but snake_case'
    """
    return _OPENS_EMPHASIS.sub(lambda mark: "".join(f"\\{one}" for one in mark[0]), text)


def label_of(text: str) -> str:
    """Return the label of a text that is a field of a form, such as ``Name`` of ``Name: Ada``."""
    found = _FIELD.fullmatch(text)
    return found["label"] if found else ""


def with_forms(blocks: Iterable[Block]) -> list[Block]:
    """Join paragraphs that are fields of one form; a label that returns begins another form."""
    joined, labels = list[Block](), set[str]()
    for block in blocks:
        label = label_of(block.text) if block.kind == "text" else ""
        if labels and label and label not in labels:
            joined[-1].text += f"{HARD_BREAK}{block.text}"
            joined[-1].last = block.last
        else:
            joined.append(block)
            labels.clear()
        labels |= {label} - {""}
    return joined


def with_title(title: str, blocks: Sequence[Block], first: int, last: int) -> list[Block]:
    """Return the blocks of a note, its title before its text; without a title, as they are."""
    title = " ".join(title.split())
    if not title:
        return list(blocks)
    if title.rstrip("*_`)\"'")[-1:] not in _ENDS:
        title += ":"
    if blocks and blocks[0].kind == "text":
        block, *others = blocks
        text = f"{title} {block.text}"
        return [Block("text", min(first, block.first), block.last, text), *others]
    return [Block("text", first, last, title), *blocks]


def placed(blocks: Sequence[Block], number: int) -> Sequence[Block]:
    """Give blocks, and all within them, one place, such as a page; return them."""
    for block in all_within(blocks):
        block.first = block.last = number
        block.rows = [Row(row.cells, number, number) for row in block.rows]
    return blocks


def all_within(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks and those within their items, in order."""
    for block in blocks:
        yield block
        for item in block.items:
            yield from all_within(item.blocks)


def _lines_of_table(rows: Sequence[Row]) -> Iterator[Line]:
    width = max((len(row.cells) for row in rows), default=0)
    for number, (written, first, last) in enumerate(rows):
        cells = [*written, *[""] * (width - len(written))]
        shown = (re.sub(r"(?<!\\)\|", r"\|", " ".join(cell.split())) for cell in cells)
        yield Line(f"| {' | '.join(shown)} |", first, last)
        if not number:
            yield Line("|" + " --- |" * width, first, first)


def _kept_as_text(line: str) -> str:
    """Put a backslash before what would open another block at the beginning of a line."""
    if _OPENS_BLOCK.match(line):
        return f"\\{line}"
    return _OPENS_ITEM.sub(r"\1\\", line, count=1) if _OPENS_ITEM.match(line) else line

"""The structure of a text: headings, and blocks of prose, lists, tables and code between them."""

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

_logger = logging.getLogger(__name__)

Kind = Literal["prose", "list", "table", "code"]
Markup = Literal["", "markdown", "rst", "code"]
"""How a text is written: plain, as Markdown, as reStructuredText, or as a program."""

ITEM = re.compile(r"[ \t]*(?:[-*+•‣–]|\(?(?:\d{1,3}|[a-zA-Z#])[.)])[ \t]+\S")
"""How a line begins that opens an item of a list."""
_ROW = re.compile(r"[ \t]*[|+].*[|+][ \t]*$")
_PARAGRAPH = re.compile(r"(?:^[^\S\n]*\S.*(?:\n|\Z))+", re.MULTILINE)
_OTHER_BREAKS = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")


class Block(NamedTuple):
    """A heading or a block; offsets count characters of the text."""

    kind: Kind | Literal["heading"]
    start: int
    end: int
    level: int = 0
    """Of a heading, from 1."""
    title: str = ""
    """Of a heading."""
    head: int = 0
    """Where the first lines end that each part of a block needs (a table's header, the line that
    opens a block of code); 0 if it needs none."""
    tail: int = 0
    """Where the last line begins that each part needs (the line that closes code); 0 for none."""


@lru_cache(maxsize=1)
def blocks_of(text: str, markup: Markup) -> Sequence[Block]:
    """List the headings and blocks of a text, in order; only white space stands between them.

    A text on which a parser fails is taken as plain.
    """
    try:
        match markup:
            case "markdown":
                from crag.documents.markdown import markdown_blocks

                return markdown_blocks(text)
            case "rst":
                from crag.documents.restructured import rst_blocks

                return rst_blocks(text)
            case "code":
                return [Block("code", *span) for span in _paragraphs(text)]
            case "":
                pass
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        _logger.warning("cannot parse a text as %s", markup, exc_info=True)
    return [Block(kind_of(text[start:end]), start, end) for start, end in _paragraphs(text)]


def kind_of(paragraph: str) -> Kind:
    """Tell what a paragraph of plain text is by its lines."""
    lines = paragraph.splitlines()
    if len(lines) > 1 and all(map(_ROW.match, lines)):
        return "table"
    return "list" if is_item(lines[0]) else "prose"


def is_item(line: str) -> bool:
    """Say whether a line begins an item of a list."""
    return ITEM.match(line) is not None


def title_of(blocks: Iterable[Block]) -> str:
    """Return the first heading of level 1, or an empty text."""
    return next((block.title for block in blocks if block.level == 1), "")


def section_paths(headings: Sequence[Block], title: str) -> list[tuple[str, ...]]:
    """Return for each heading the headings above it and its own, without the document's title."""
    paths: list[tuple[str, ...]] = []
    above: list[Block] = []
    for heading in headings:
        above = [one for one in above if one.level < heading.level] + [heading]
        path = tuple(one.title for one in above if one.title)
        paths.append(path[1:] if path[:1] == (title,) else path)
    return paths


def line_offsets(text: str) -> list[int]:
    """Return where each line starts, and the end of the text."""
    return [0, *(match.end() for match in re.finditer("\n", text)), len(text)]


def with_line_feeds_only(text: str) -> str:
    """Replace what else parsers take for the end of a line, one for one."""
    return _OTHER_BREAKS.sub(" ", text)


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    for match in _PARAGRAPH.finditer(text):
        yield match.start(), match.start() + len(match[0].rstrip())

"""Paragraphs of plain text: of files, of search services, and of PDF from the web."""

import re
from collections.abc import Iterator
from itertools import groupby, pairwise

from crag.text.blocks import HARD_BREAK, Block, Item, Row, escaped
from crag.text.tables import is_head, with_labels

_BREAK = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$")
FEWEST_CHARACTERS = 11
"""Shorter paragraphs are left out: the official code reads only those of more than 10."""
WIDEST_LINE = 120
"""Characters; text with a longer line was not wrapped at a width."""
_ITEM = re.compile(r"[ \t]*(?:[-*+•‣–]|\(?(?P<number>\d{1,3})[.)])[ \t]+(?=\S)")
_ROW = re.compile(r"[ \t]*[|+].*[|+][ \t]*")
_RULE = re.compile(r"[-=+:| ]*")
_MARGIN, _COLUMN = re.compile(r"\s{2,}"), re.compile(r"x(?: ?x)*")
_FEWEST_COLUMNS = 3
"""Of a table that no bars part; it has as many lines."""
_UNDERLINE = re.compile(r"\s*([=~^*#-])\1{2,}\s*")
_WIDEST_TITLE = 80
"""Characters of a heading that is underlined."""
_TITLE = re.compile(
    r"(?P<number>(?:\d+\.)+\d*\.? +)?(?![a-z])\w[\w'’()&/-]*(?: [\w'’()&/-]+){0,5}(?<!-)"
)
"""A few words without other marks, of which the first begins with a capital letter or a figure;
a number of a section may stand before them."""
_LEVELS = {"=": 2, "": 4}
"""Of headings by their rule; the first one is above all, and one without a rule below all."""
_OTHER_LEVEL = 3
_LONGEST = 1000
"""Characters of lines that stay one paragraph."""
_NARROWEST, _MOSTLY, _GOING_ON = 40, 0.8, 0.2
"""Characters of a line, share of the lines that end at the width, and share of those that begin
with a small letter, from which on a paragraph was wrapped."""
_FULL = 0.7
"""Share of the widest line from which on a line was perhaps wrapped rather than ended."""


def paragraphs_of(text: str) -> tuple[str, ...]:
    """Return the paragraphs of plain text: what stands between empty lines, each on one line.

    Text without an empty line is taken line by line, since some services write each paragraph on a
    line; but where no line is longer than `WIDEST_LINE`, lines that were wrapped are joined.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n\n").strip()
    parts = _BREAK.split(text) if _BREAK.search(text) else _unwrapped(text.split("\n"))
    joined = (" ".join(part.split()) for part in parts)
    return tuple(part for part in joined if len(part) >= FEWEST_CHARACTERS)


def blocks_of_text(text: str) -> list[Block]:
    """Return the headings, paragraphs, lists and tables of plain text; their places are its lines.

    Lines that were wrapped are joined, others stay lines of their own; a long sequence of them,
    such as a log, is one paragraph a line. A heading is underlined, or is a few words that stand
    alone at the beginning or above a paragraph.
    """
    paragraphs: list[tuple[int, list[str]]] = []
    number = 1
    for is_empty, group in groupby(text.split("\n"), lambda line: not line.strip()):
        lines = [line.replace("\f", " ").rstrip() for line in group]
        paragraphs += [] if is_empty else [(number, lines)]
        number += len(lines)
    blocks: list[Block] = []
    for (first, lines), (_, following) in pairwise([*paragraphs, (number, [])]):
        size, mark = _underlined(lines)
        depth, below = _depth(lines[:1]), _depth(following)
        is_title = depth >= 0 and following and (below < 0 or below > depth or not blocks)
        if not size and is_title and len(lines) == 1:
            size = 1
        if size:
            title = escaped(" ".join(lines[max(size - 2, 0)].split()))
            level = _LEVELS.get(mark, _OTHER_LEVEL) + max(depth, 0) if blocks else 1
            blocks.append(Block("heading", first, first + size - 1, title, level=level))
        blocks += _blocks(lines[size:], first + size) if lines[size:] else ()
    return blocks


def _underlined(lines: list[str]) -> tuple[int, str]:
    """Return how many lines a heading takes with the rules around it, and of what they are."""
    above = 1 if _UNDERLINE.fullmatch(lines[0]) else 0
    title, rule = [*lines[above:], "", ""][:2]
    found = _UNDERLINE.fullmatch(rule)
    is_title = title.strip() and len(title) <= _WIDEST_TITLE and "|" not in title
    return (above + 2, found[1]) if found and is_title else (0, "")


def _depth(lines: list[str]) -> int:
    """Return how deep a line is numbered that may be a title; -1 of what is none."""
    found = _TITLE.fullmatch(lines[0]) if len(lines) == 1 else None
    return (found["number"] or "").strip(". ").count(".") if found else -1


def _blocks(lines: list[str], number: int) -> Iterator[Block]:
    last = number + len(lines) - 1
    if cells := _cells(lines):
        rows = [Row(row, number + at, number + at) for at, row in enumerate(cells)]
        shown = [row for row in rows if not _RULE.fullmatch("".join(row.cells))]
        if shown:
            yield Block("table", number, last, rows=with_labels(shown))
        return
    starts = [at for at, line in enumerate(lines) if _ITEM.match(line)]
    if starts:
        yield from _blocks(lines[: starts[0]], number) if starts[0] else ()
        items = []
        for start, end in pairwise([*starts, len(lines)]):
            mark = _ITEM.match(lines[start])
            held = [lines[start][mark.end() if mark else 0 :], *lines[start + 1 : end]]
            text = escaped(" ".join(" ".join(held).split()))
            label = f"{mark['number']}." if mark and mark["number"] else "-"
            items.append(Item(label, [Block("text", number + start, number + end - 1, text)]))
        yield Block("list", number + starts[0], last, items=items)
        return
    texts = [escaped(" ".join(line.split())) for line in lines]
    if _are_wrapped(texts):
        yield Block("text", number, last, " ".join(texts))
    elif sum(map(len, texts)) > _LONGEST:
        yield from (Block("text", at, at, text) for at, text in enumerate(texts, number))
    else:
        yield Block("text", number, last, HARD_BREAK.join(texts))


def _cells(lines: list[str]) -> list[list[str]]:
    """Return the cells of a table that bars part, or two spaces and more on each of its lines."""
    if len(lines) > 1 and all(map(_ROW.fullmatch, lines)):
        return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    head = _MARGIN.split(lines[0].strip())
    if len(head) < _FEWEST_COLUMNS or not is_head(head) or len(lines) < _FEWEST_COLUMNS:
        return []
    written = [line for line in lines if not _RULE.fullmatch(line)] or lines
    filled = {at for line in written for at, letter in enumerate(line) if letter != " "}
    shape = "".join("x" if at in filled else " " for at in range(max(filled) + 1))
    columns = [found.span() for found in _COLUMN.finditer(shape)]
    cells = [[line[start:end].strip() for start, end in columns] for line in lines]
    return cells if cells[0] == head else []


def _are_wrapped(lines: list[str]) -> bool:
    """Return whether lines end where the next word has no room, and go on, as wrapped ones do."""
    width = max(map(len, lines))
    ends = [len(line) + 1 + len(after.split(" ", 1)[0]) > width for line, after in pairwise(lines)]
    going_on = sum(line[:1].islower() for line in lines[1:]) >= _GOING_ON * len(ends)
    return width >= _NARROWEST and going_on and sum(ends) >= _MOSTLY * len(ends)


def _unwrapped(lines: list[str]) -> list[str]:
    """Join each line that is nearly full and ends within a sentence with the next one."""
    widest = max(map(len, lines))
    if widest > WIDEST_LINE:
        return lines
    joined, is_open = list[str](), False
    for line in lines:
        if is_open:
            joined[-1] += f"\n{line}"
        else:
            joined.append(line)
        is_full = len(line.rstrip()) >= _FULL * widest
        is_open = is_full and not _SENTENCE_END.search(line.rstrip())
    return joined

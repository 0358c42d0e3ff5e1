"""The order in which a page of a PDF is read: columns one after the other, and tables in rows.

A PDF says where each word stands, and nothing of columns, tables or paragraphs; and words may be
drawn in any order. So only the places count.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from crag.text.blocks import Block, Item, Row, escaped
from crag.text.pdf_page import SeenText, Segment

_ITEM = re.compile(
    r"(?P<bullet>[-*+•‣–▪●◦■])\s+|(?P<number>\d{1,3})[.)]\s+|\(?(?:\d{1,3}|\w)[.)]\s+"
)
_LEADERS = re.compile(r"(?:[.·…_]\s?){4,}\s*[\divxlc]{1,6}$", re.IGNORECASE)
"""How a line of a table of contents ends."""
_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-$")
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$")
_SPACE = 0.18
"""Distance of two words, in font sizes, from which on a space is read between them."""
_TIGHT, _NEAR = 1.4, 3.2
"""Distance of two lines, in font sizes, up to which they may be one cell, or rows of one table."""
_FLOWING, _WIDE = 0.25, 8
"""Share of the lines of prose that begin with a small letter at least, and font sizes that they are
wide where letters are not small or capital."""
_LARGE = 1.15
"""Times the size of the text from which on a line is a heading."""
_ALIKE = 0.3
"""Points by which sizes differ that are meant to be the same."""
_LONGEST_HEADING = 200

Line = Sequence[Segment]
"""What stands at one height, from left to right."""


def lines_of_page(segments: Iterable[Segment]) -> list[Line]:
    """Return the lines of a page from top to bottom, those of neighbouring columns joined."""
    lines: list[list[Segment]] = []
    for segment in sorted(segments, key=lambda one: -_middle(one)):
        near = lines[-1] if lines else []
        widest = max(near, key=lambda one: one.right - one.left, default=segment)
        if near and abs(_middle(segment) - _middle(widest)) < 0.4 * max(segment.size, widest.size):
            near.append(segment)
        else:
            lines.append([segment])
    return [sorted(line, key=lambda one: one.left) for line in lines]


def joined(line: Line) -> Segment:
    """Return a line as one segment."""
    letters = "".join(one.text for one in line)
    is_leftwards = sum(unicodedata.bidirectional(one) in {"R", "AL"} for one in letters) * 2 > len(
        letters
    )
    text, before = "", None
    for one in reversed(line) if is_leftwards else line:
        gap = 0 if before is None else max(one.left - before.right, before.left - one.right)
        is_apart = one.text.startswith(" ") or gap > _SPACE * one.size
        text += " " * is_apart + one.text.strip()
        before = one
    longest = max(line, key=lambda one: len(one.text))
    left, right = min(one.left for one in line), max(one.right for one in line)
    return Segment(" ".join(text.split()), left, right, longest.base, longest.size)


def is_leader(line: Line) -> bool:
    """Return whether a line is one of a table of contents, with dots before the page."""
    return _LEADERS.search(joined(line).text) is not None


def sizes_of(segments: Iterable[Segment]) -> list[float]:
    """Return the sizes of the headings of a file, the largest one first, and that of its text."""
    letters = Counter[float]()
    for one in segments:
        letters[round(2 * one.size) / 2] += len(one.text)
    if not letters:
        return [0.0]
    usual = letters.most_common(1)[0][0]
    return [*sorted((size for size in letters if size > _LARGE * usual), reverse=True), usual]


def blocks_of_lines(
    lines: Sequence[Line], seen: SeenText, page: int, sizes: Sequence[float]
) -> Iterator[Block]:
    """Yield the blocks of a page in reading order; `sizes` are those of its file."""
    for region in _regions([one for line in lines for one in line], seen):
        yield from _blocks(region, seen, page, sizes)


def blocks_of_text(text: str, page: int) -> Iterator[Block]:
    """Yield the paragraphs of a text that has empty lines between them."""
    for paragraph in re.split(r"\n\s*\n", text):
        if words := " ".join(paragraph.split()):
            yield Block("text", page, page, escaped(words))


def going_on(blocks: Iterable[Block]) -> Iterator[Block]:
    """Join what goes on in the next column or on the next page."""
    before: Block | None = None
    for block in blocks:
        if before is None or not _goes_on(before, block):
            if before is not None:
                yield before
            before = block
    if before is not None:
        yield before


def _goes_on(before: Block, block: Block) -> bool:
    """Join two blocks, and return whether they are one.

    A paragraph goes on within a sentence, a list on the next page, and there a table with as many
    columns; its head, if it is repeated, is left out.
    """
    is_next = before.kind == block.kind and before.last < block.first
    if before.kind == block.kind == "text":
        if _SENTENCE_END.search(before.text) or not block.text[:1].islower():
            return False
        before.text = _together(before.text, block.text)
    elif is_next and block.kind == "list":
        before.items += block.items
    elif is_next and block.kind == "table":
        head, first = before.rows[0].cells, block.rows[0].cells
        if len(head) != len(first):
            return False
        before.rows += block.rows[first == head :]
    else:
        return False
    before.last = block.last
    return True


def _regions(segments: Sequence[Segment], seen: SeenText) -> Iterator[list[Line]]:
    """Yield what is read one after the other: a column, or what stands over or between columns."""
    lines = lines_of_page(segments)
    for table in _tables(lines, seen):
        if _is_ruled(lines[table.start : table.end], seen):
            yield from _regions([one for line in lines[: table.start] for one in line], seen)
            yield lines[table.start : table.end]
            yield from _regions([one for line in lines[table.end :] for one in line], seen)
            return
    gutter = _gutter(segments, seen)
    if gutter is None:
        yield lines
        return
    for band in _bands(segments, gutter):
        if _parts(band, gutter, seen):
            yield from _regions([one for one in band if one.right <= gutter], seen)
            yield from _regions([one for one in band if one.right > gutter], seen)
        else:
            yield lines_of_page(band)


def _gutter(segments: Sequence[Segment], seen: SeenText) -> float | None:
    """Return the right edge of a column beside which another one stands, if there is one."""
    most, found = 0, None
    edges = sorted({round(one.right) + 1.0 for one in segments})
    for edge in edges:
        beside = [one for one in segments if one.left >= edge]
        within = [one for one in segments if one.right <= edge]
        if len(within) < 2 or len(beside) < 2:  # noqa: PLR2004 - no column is one line
            continue
        if min(one.left for one in beside) - edge < min(one.size for one in beside) / 2:
            # Nearer than that are words of one line, unless the next edge is the column's.
            continue
        parted = [band for band in _bands(segments, edge) if _parts(band, edge, seen)]
        if (lines := sum(map(len, parted))) > most:
            most, found = lines, edge
    return found


def _bands(segments: Sequence[Segment], gutter: float) -> Iterator[list[Segment]]:
    """Yield what stands between the lines that cross a gutter, and these, from top to bottom."""
    ordered = sorted(segments, key=lambda one: -_middle(one))
    crosses = [one.left < gutter < one.right for one in ordered]
    for _, band in groupby(zip(ordered, crosses, strict=True), lambda pair: pair[1]):
        yield [one for one, _ in band]


def _parts(band: Sequence[Segment], gutter: float, seen: SeenText) -> bool:
    """Return whether a gutter parts columns of prose in a band, and not those of a table."""
    sides = [
        [one for one in band if one.right <= gutter],
        [one for one in band if one.left >= gutter],
    ]
    left, right = map(lines_of_page, sides)
    if sum(map(len, sides)) < len(band) or min(len(left), len(right)) < 2:  # noqa: PLR2004
        return False
    lines = lines_of_page(band)
    if any(_rules(lines, seen)) or len(lines) < 3:  # noqa: PLR2004
        return False
    starts, line_height = [_starts(side) for side in (left, right)], band[0].size
    common = [
        at for at in starts[0] if any(abs(at - other) < line_height / 5 for other in starts[1])
    ]
    if len(common) > 1 and len(common) > max(map(len, starts)) / 2:  # Rows of a table.
        return False
    return all(_is_prose(side, seen) for side in (left, right))


def _is_prose(lines: Sequence[Line], seen: SeenText) -> bool:
    if sum(map(len, lines)) > 1.25 * len(lines):
        return _gutter([one for line in lines for one in line], seen) is not None
    texts = [joined(line) for line in lines]
    cased = [
        one.text[0].islower() for one in texts[1:] if one.text[0].upper() != one.text[0].lower()
    ]
    if cased:
        return sum(cased) >= _FLOWING * (len(texts) - 1)
    return median(one.right - one.left for one in texts) > _WIDE * median(one.size for one in texts)


def _starts(lines: Sequence[Line]) -> list[float]:
    """Return the heights of lines above which there is more room than elsewhere."""
    gaps = [above[0].base - below[0].base for above, below in pairwise(lines)]
    usual = median(gaps) if gaps else 0
    return [line[0].base for line, gap in zip(lines[1:], gaps, strict=True) if gap > 1.2 * usual]


def _rules(lines: Sequence[Line], seen: SeenText) -> list[bool]:
    """Return for each line but the first whether a rule lies above it."""
    left = min(one.left for line in lines for one in line)
    right = max(one.right for line in lines for one in line)
    return [
        seen.is_ruled(left, right, _middle(above[0]), _middle(below[0]))
        for above, below in pairwise(lines)
    ]


def _is_ruled(lines: Sequence[Line], seen: SeenText) -> bool:
    """Return whether rules part the rows of a table, and not only its head from the rest."""
    return sum(_rules(lines, seen)) >= max(2, len(lines) / 4)


def _blocks(
    lines: Sequence[Line], seen: SeenText, page: int, sizes: Sequence[float]
) -> Iterator[Block]:
    """Yield tables, and what stands between them."""
    at = 0
    for table in _tables(lines, seen):
        yield from _texts([joined(line) for line in lines[at : table.start]], page, sizes)
        yield Block("table", page, page, rows=[Row(row, page, page) for row in table.rows])
        at = table.end
    yield from _texts([joined(line) for line in lines[at:]], page, sizes)


class _Table(NamedTuple):
    """The lines that are a table, and what its cells say."""

    start: int
    end: int
    rows: list[list[str]]


def _tables(lines: Sequence[Line], seen: SeenText) -> Iterator[_Table]:
    at = last = 0
    while at < len(lines):
        end = _end_of_table(lines, at)
        start = _start_of_table(lines, at, end, last, seen) if end > at + 1 else at
        if end > at + 1 and (rows := _rows(lines[start:end], seen)):
            yield _Table(start, end, rows)
            at = last = end
        else:
            at += 1


def _start_of_table(lines: Sequence[Line], at: int, end: int, last: int, seen: SeenText) -> int:
    """Return where a table starts: its first row may begin with one cell, above the others."""
    columns = _columns(lines[at:end])
    while (
        at > last
        and len(lines[at - 1]) == 1
        and lines[at - 1][0].base - lines[at][0].base < _TIGHT * lines[at][0].size
        and _fits(lines[at - 1][0], columns)
        and _is_ruled(lines[at:end], seen)
        and not any(_rules([lines[at - 1], lines[at]], seen))
    ):
        at -= 1
    return at


def _end_of_table(lines: Sequence[Line], start: int) -> int:
    """Return where lines end that may be a table: cells beside each other, one below the other."""
    if len(_cells(lines[start])) == 1:
        return start
    end = at = start + 1
    while at < len(lines) and lines[at - 1][0].base - lines[at][0].base < _NEAR * lines[at][0].size:
        at += 1
        if len(_cells(lines[at - 1])) > 1:
            end = at
        elif not _fits(lines[at - 1][0], _columns(lines[start:end])):
            at -= 1
            break
    columns = _columns(lines[start:end])
    while end < at:  # The last cell may go on.
        above, line = lines[end - 1], lines[end]
        is_tight = above[0].base - line[0].base < _TIGHT * line[0].size
        is_inner = len(columns) > 1 and line[0].left >= columns[1][0] - 1
        if not (is_tight and (is_inner or joined(line).text[:1].islower())):
            break
        end += 1
    return end


def _cells(line: Line) -> list[Segment]:
    """Return the segments of a line, a mark of an item together with the item."""
    if len(line) > 1 and _ITEM.fullmatch(f"{line[0].text.strip()} "):
        return [joined(line[:2]), *line[2:]]
    return list(line)


def _fits(segment: Segment, columns: Sequence[tuple[float, float]]) -> bool:
    return sum(_overlap(segment, column) for column in columns) < 2  # noqa: PLR2004


def _places(segment: Segment, columns: Sequence[tuple[float, float]]) -> list[int]:
    """Return the columns that a cell stands over, or the nearest one."""
    middle = (segment.left + segment.right) / 2
    nearest = min(range(len(columns)), key=lambda at: abs(sum(columns[at]) / 2 - middle))
    return [at for at, one in enumerate(columns) if _overlap(segment, one)] or [nearest]


def _overlap(segment: Segment, column: tuple[float, float]) -> bool:
    common = min(segment.right, column[1]) - max(segment.left, column[0])
    return common > min(segment.size / 2, (segment.right - segment.left) / 2)


def _columns(lines: Sequence[Line]) -> list[tuple[float, float]]:
    """Return left and right of each column; few cells may stand over more than one."""
    cells = [one for line in lines if len(_cells(line)) > 1 for one in _cells(line)]
    edges = sorted([(one.left, 1) for one in cells] + [(one.right, -1) for one in cells])
    found = (_covered(edges, few) for few in range(len(lines) // 5 + 1))
    return max((one for one in found if _are_few_wide(cells, one)), key=len, default=[])


def _are_few_wide(cells: Sequence[Segment], columns: Sequence[tuple[float, float]]) -> bool:
    wide = sum(len(_places(cell, columns)) > 1 for cell in cells) if columns else 0
    return wide <= len(cells) / 6


def _covered(edges: Sequence[tuple[float, int]], few: int) -> list[tuple[float, float]]:
    """Return where more than few cells stand."""
    columns: list[tuple[float, float]] = []
    depth, start = 0, 0.0
    for x, change in edges:
        if depth <= few < depth + change:
            start = x
        if depth > few >= depth + change:
            columns.append((start, x))
        depth += change
    return columns


def _rows(lines: Sequence[Line], seen: SeenText) -> list[list[str]]:
    """Return the cells of a table, or nothing if it is none."""
    columns = _columns(lines)
    cells_of_all = [cell for line in lines for cell in _cells(line)]
    if len(columns) < 2 or not _are_few_wide(cells_of_all, columns):  # noqa: PLR2004
        return []
    ruled, rules = _is_ruled(lines, seen), _rules(lines, seen)
    gaps = [above[0].base - below[0].base for above, below in pairwise(lines)]
    rows: list[list[list[Segment]]] = []
    for at, line in enumerate(lines):
        cells: list[list[Segment]] = [[] for _ in columns]
        for one in _cells(line):
            for place in _places(one, columns):
                cells[place].append(one)
        if at and (not rules[at - 1] if ruled else _continues(cells, gaps, at - 1)):
            rows[-1] = [[*above, *below] for above, below in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    if sum(sum(map(bool, row)) > 1 for row in rows) < max(2, len(rows) / 2):
        return []
    return [[_cell(cell) for cell in row] for row in rows]


def _continues(cells: Sequence[Sequence[Segment]], gaps: Sequence[float], at: int) -> bool:
    """Return whether a line goes on with the row above it."""
    (first, *_) = [one for cell in cells for one in cell]
    if gaps[at] > _TIGHT * first.size:
        return False
    if max(gaps) > 1.15 * gaps[at]:  # Rows stand farther apart than the lines of one.
        return True
    return not cells[0] and all(cell[0].text.strip()[:1].islower() for cell in cells if cell)


def _cell(segments: Sequence[Segment]) -> str:
    text = ""
    for line in lines_of_page(segments):
        text = _together(text, joined(line).text)
    return escaped(text)


def _texts(lines: Sequence[Segment], page: int, sizes: Sequence[float]) -> Iterator[Block]:
    """Yield headings, paragraphs and lists of a column."""
    items: list[Item] = []
    for paragraph in _paragraphs(lines):
        text, size = reduce(_together, (line.text for line in paragraph)), paragraph[0].size
        is_heading = size > _LARGE * sizes[-1] and len(text) < _LONGEST_HEADING
        mark = None if is_heading else _ITEM.match(text)
        if mark is not None:
            said = text[mark.end() :] if mark["bullet"] or mark["number"] else text
            label = f"{mark['number']}." if mark["number"] else "-"
            items.append(Item(label, [Block("text", page, page, escaped(said))]))
            continue
        if items:
            yield Block("list", page, page, items=items)
            items = []
        if is_heading:
            level = 1 + sum(other > size + _ALIKE for other in sizes[:-1])
            yield Block("heading", page, page, escaped(text), level)
        else:
            yield Block("text", page, page, escaped(text))
    if items:
        yield Block("list", page, page, items=items)


def _paragraphs(lines: Sequence[Segment]) -> Iterator[list[Segment]]:
    if not lines:
        return
    right = max(one.right for one in lines)
    gaps = [above.base - below.base for above, below in pairwise(lines)]
    usual = min(median(gaps), 1.5 * median(one.size for one in lines)) if gaps else 0
    paragraph = [lines[0]]
    for (above, line), gap in zip(pairwise(lines), gaps, strict=True):
        is_near = 0 < gap < 1.25 * max(usual, line.size) and abs(line.size - above.size) < 1
        word = len(line.text.split(" ", 1)[0]) * (line.right - line.left) / len(line.text)
        is_full = above.right + word > right - line.size or line.text[:1].islower()
        is_open = not _SENTENCE_END.search(above.text)
        is_moved = line.left - above.left > line.size / 2 and len(paragraph) > 1
        is_item = _ITEM.match(line.text)
        hangs = _ITEM.match(paragraph[0].text) and line.left > paragraph[0].left + line.size / 2
        goes_on = hangs or (is_full and (is_open or not is_moved)) or line.size > 1.15 * usual
        if is_near and goes_on and not is_item:
            paragraph.append(line)
        else:
            yield paragraph
            paragraph = [line]
    yield paragraph


def _together(text: str, more: str) -> str:
    """Join two lines; a word that was cut at the end of the first one is whole again."""
    if _HYPHENATED.search(text) and more[:1].islower():
        return text[:-1] + more
    return f"{text} {more}".strip()


def _middle(segment: Segment) -> float:
    return segment.base + 0.3 * segment.size

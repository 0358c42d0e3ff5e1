"""The order in which a page of a PDF is read: columns one after the other, and tables in rows.

A PDF says where each word stands, and nothing of columns, tables or paragraphs; and words may be
drawn in any order. So only the places count.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from crag.text.blocks import Block, Item, Row, escaped
from crag.text.pdf_page import Line, SeenText, Segment, joined, lines_of

_ITEM = re.compile(
    r"(?P<bullet>[-*+•‣–▪●◦■])\s+|(?P<number>\d{1,3})[.)]\s+|\(?(?:\d{1,3}|\w)[.)]\s+"
)
_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-$")
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$")
_TIGHT, _NEAR = 1.4, 3.2
"""Distance of two lines, in font sizes, up to which they may be one cell, or rows of one table."""
_FLOWING, _WIDE = 0.25, 8
"""Share of the lines of prose that begin with a small letter at least, and font sizes that they are
wide where letters are not small or capital."""
LARGE = 1.15
"""Times the size of the text from which on a line is a heading."""
_ALIKE = 0.3
"""Points by which sizes differ that are meant to be the same."""
_LONGEST_HEADING = 200
_FEWEST = 2
"""Lines and columns."""

_Column = tuple[float, float]
"""Left and right."""


def blocks_of_lines(
    lines: Sequence[Line], seen: SeenText, page: int, sizes: Sequence[float]
) -> Iterator[Block]:
    """Yield the blocks of a page in reading order.

    `sizes` are those of the headings of its file, the largest one first, and that of its text.
    Tables with rules are found first, since their cells may look like columns; then columns.
    """
    segments = [one for line in lines for one in line]
    tables = list(_tables(lines, seen))
    table = next((one for one in tables if one.is_ruled), None)
    gutter = None if table else _gutter(segments, seen)
    if gutter is not None:
        for band in _bands(segments, gutter):
            sides = [[one for one in band if (one.right > gutter) == side] for side in (0, 1)]
            for part in sides if _parts(band, gutter, seen) else [band]:
                yield from blocks_of_lines(lines_of(part), seen, page, sizes)
    elif table := table or next(iter(tables), None):
        yield from blocks_of_lines(lines[: table.start], seen, page, sizes)
        yield Block("table", page, page, rows=[Row(row, page, page) for row in table.rows])
        yield from blocks_of_lines(lines[table.end :], seen, page, sizes)
    else:
        yield from _texts(list(map(joined, lines)), page, sizes)


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
    if before.kind != block.kind or (block.kind != "text" and before.last == block.first):
        return False
    match block.kind:
        case "text" if block.text[:1].islower() and not _SENTENCE_END.search(before.text):
            before.text = together(before.text, block.text)
        case "list":
            before.items += block.items
        case "table" if len(before.rows[0].cells) == len(block.rows[0].cells):
            before.rows += block.rows[block.rows[0].cells == before.rows[0].cells :]
        case _:
            return False
    before.last = block.last
    return True


def together(text: str, more: str) -> str:
    """Join two lines; a word that was cut at the end of the first one is whole again."""
    if _HYPHENATED.search(text) and more[:1].islower():
        return text[:-1] + more
    return f"{text} {more}".strip()


def _gutter(segments: Sequence[Segment], seen: SeenText) -> float | None:
    """Return the right edge of a column beside which another one stands, if there is one."""
    most, found = 0, None
    for edge in sorted({round(one.right) + 1.0 for one in segments}):
        beside = [one for one in segments if one.left >= edge]
        # Nearer than that are words of one line, unless the next edge is the column's.
        is_edge = beside and min(one.left for one in beside) - edge >= beside[0].size / 2
        bands = _bands(segments, edge) if is_edge else ()
        parted = sum(len(band) for band in bands if _parts(band, edge, seen))
        if parted > most:
            most, found = parted, edge
    return found


def _bands(segments: Sequence[Segment], gutter: float) -> Iterator[list[Segment]]:
    """Yield what stands between the lines that cross a gutter, and these, from top to bottom."""
    ordered = sorted(segments, key=lambda one: -one.middle)
    for _, band in groupby(ordered, lambda one: one.left < gutter < one.right):
        yield list(band)


def _parts(band: Sequence[Segment], gutter: float, seen: SeenText) -> bool:
    """Return whether a gutter parts columns of prose in a band, and not those of a table."""
    left = lines_of(one for one in band if one.right <= gutter)
    right = lines_of(one for one in band if one.left >= gutter)
    lines = lines_of(band)
    if min(len(left), len(right)) < _FEWEST or len(lines) <= _FEWEST or any(seen.rules(lines)):
        return False
    starts, other_starts = _starts(left), _starts(right)
    near = band[0].size / 5
    common = sum(any(abs(at - other) < near for other in other_starts) for at in starts)
    are_rows = common > 1 and common > max(len(starts), len(other_starts)) / 2
    return not are_rows and _is_prose(left, seen) and _is_prose(right, seen)


def _is_prose(lines: Sequence[Line], seen: SeenText) -> bool:
    if sum(map(len, lines)) > 1.25 * len(lines):
        return _gutter([one for line in lines for one in line], seen) is not None
    texts = list(map(joined, lines))
    if any(one.text[0].lower() != one.text[0].upper() for one in texts[1:]):
        small = sum(one.text[0].islower() for one in texts[1:])
        return small >= _FLOWING * (len(texts) - 1)
    return median(one.right - one.left for one in texts) > _WIDE * median(one.size for one in texts)


def _starts(lines: Sequence[Line]) -> list[float]:
    """Return the heights of lines above which there is more room than elsewhere."""
    gaps = [above[0].base - below[0].base for above, below in pairwise(lines)]
    usual = median(gaps) if gaps else 0
    return [line[0].base for line, gap in zip(lines[1:], gaps, strict=True) if gap > 1.2 * usual]


class _Table(NamedTuple):
    """The lines that are a table, and what its cells say."""

    start: int
    end: int
    rows: list[list[str]]
    is_ruled: bool
    """Whether rules part its rows, and not only its head from the rest."""


def _tables(lines: Sequence[Line], seen: SeenText) -> Iterator[_Table]:
    """Find cells beside each other, one row below the other."""
    cells, last = list(map(_cells, lines)), 0
    for at in range(len(lines)):
        end = _end_of_table(lines, cells, at) if at >= last else at
        if end <= at + 1:
            continue
        columns = _columns(cells[at:end])
        start, is_ruled = at, sum(seen.rules(lines[at:end])) >= max(2, (end - at) / 4)
        while (  # The first row may begin with one cell, above the others.
            is_ruled
            and start > last
            and _distance(lines, start) < _TIGHT
            and len(cells[start - 1]) == _width(cells[start - 1][0], columns) == 1
            and not any(seen.rules(lines[start - 1 : start + 1]))
        ):
            start -= 1
        rules = seen.rules(lines[start:end]) if is_ruled else None
        if rows := _rows(cells[start:end], columns, rules):
            yield _Table(start, end, rows, is_ruled)
            last = end


def _end_of_table(lines: Sequence[Line], cells: Sequence[Line], start: int) -> int:
    """Return where lines end that may be a table: cells beside each other, one below the other."""
    end = start + (len(cells[start]) > 1)
    following = start + 1
    while start < end and following < len(lines) and _distance(lines, following) < _NEAR:
        if len(cells[following]) > 1:
            end = following + 1
        elif _width(cells[following][0], _columns(cells[start:end])) > 1:
            break
        following += 1
    columns = _columns(cells[start:end])
    if len(columns) < _FEWEST:
        return start
    while end < following and _distance(lines, end) < _TIGHT:  # The last cell may go on.
        line = cells[end][0]
        if line.left < columns[1][0] - 1 and not line.text[:1].islower():
            break
        end += 1
    return end


def _cells(line: Line) -> Line:
    """Return the segments of a line, a mark of an item together with the item."""
    if len(line) > 1 and _ITEM.fullmatch(f"{line[0].text} "):
        return [joined(line[:2]), *line[2:]]
    return line


def _distance(lines: Sequence[Line], at: int) -> float:
    """Return how far a line stands below the one above it, in font sizes."""
    return (lines[at - 1][0].base - lines[at][0].base) / lines[at][0].size


def _columns(rows: Sequence[Line]) -> list[_Column]:
    """Return left and right of each column; few cells may stand over more than one."""
    cells = [one for row in rows if len(row) > 1 for one in row]
    edges = sorted([(one.left, 1) for one in cells] + [(one.right, -1) for one in cells])
    best: list[_Column] = []
    for few in range(len(rows) // 5 + 1):
        depth, start, columns = 0, 0.0, list[_Column]()
        for x, change in edges:  # More than few cells stand in a column.
            if depth <= few < depth + change:
                start = x
            elif depth > few >= depth + change:
                columns.append((start, x))
            depth += change
        if len(columns) > len(best) and _are_few_wide(cells, columns):
            best = columns
    return best


def _are_few_wide(cells: Sequence[Segment], columns: Sequence[_Column]) -> bool:
    return sum(_width(cell, columns) > 1 for cell in cells) <= len(cells) / 6


def _places(cell: Segment, columns: Sequence[_Column]) -> list[int]:
    """Return the columns that a cell stands over, or the nearest one."""
    least = min(cell.size, cell.right - cell.left) / 2
    over = [
        at
        for at, (left, right) in enumerate(columns)
        if min(cell.right, right) - max(cell.left, left) > least
    ]
    middle = cell.left + cell.right
    nearest = min(range(len(columns)), key=lambda at: abs(sum(columns[at]) - middle), default=0)
    return over or [nearest]


def _width(cell: Segment, columns: Sequence[_Column]) -> int:
    return len(_places(cell, columns))


def _rows(
    lines: Sequence[Line], columns: Sequence[_Column], rules: Sequence[bool] | None
) -> list[list[str]]:
    """Return the cells of a table, or nothing if it is none."""
    if not _are_few_wide([one for line in lines for one in line], columns):
        return []
    gaps = [above[0].base - line[0].base for above, line in pairwise(lines)]
    rows: list[list[list[Segment]]] = []
    for at, line in enumerate(lines):
        cells: list[list[Segment]] = [[] for _ in columns]
        for one in line:
            for place in _places(one, columns):
                cells[place].append(one)
        goes_on = at and (not rules[at - 1] if rules else _continues(cells, gaps, at - 1))
        if goes_on:
            rows[-1] = [[*above, *more] for above, more in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    if sum(sum(map(bool, row)) > 1 for row in rows) < max(2, len(rows) / 2):
        return []
    said = ([[joined(one).text for one in lines_of(cell)] for cell in row] for row in rows)
    return [[escaped(reduce(together, cell, "")) for cell in row] for row in said]


def _continues(cells: Sequence[Line], gaps: Sequence[float], at: int) -> bool:
    """Return whether a line goes on with the row above it."""
    firsts = [cell[0] for cell in cells if cell]
    if gaps[at] > _TIGHT * firsts[0].size:
        return False
    if max(gaps) > LARGE * gaps[at]:  # Rows stand farther apart than the lines of one.
        return True
    return not cells[0] and all(one.text[:1].islower() for one in firsts)


def _texts(lines: Sequence[Segment], page: int, sizes: Sequence[float]) -> Iterator[Block]:
    """Yield headings, paragraphs and lists of a column."""
    items: list[Item] = []
    for paragraph in [*_paragraphs(lines), []]:
        text = reduce(together, (line.text for line in paragraph), "")
        size = paragraph[0].size if paragraph else 0
        is_heading = size > LARGE * sizes[-1] and len(text) < _LONGEST_HEADING
        if (mark := _ITEM.match(text)) and not is_heading:
            said = text[mark.end() :] if mark["bullet"] or mark["number"] else text
            label = f"{mark['number']}." if mark["number"] else "-"
            items.append(Item(label, [Block("text", page, page, escaped(said))]))
            continue
        if items:
            yield Block("list", page, page, items=items)
            items = []
        level = 1 + sum(other > size + _ALIKE for other in sizes[:-1]) if is_heading else 0
        if text:
            yield Block("heading" if is_heading else "text", page, page, escaped(text), level)


def _paragraphs(lines: Sequence[Segment]) -> Iterator[list[Segment]]:
    right = max((one.right for one in lines), default=0)
    gaps = [above.base - below.base for above, below in pairwise(lines)]
    usual = min(median(gaps), 1.5 * median(one.size for one in lines)) if gaps else 0
    paragraph = list(lines[:1])
    for (above, line), gap in zip(pairwise(lines), gaps, strict=True):
        is_near = 0 < gap < 1.25 * max(usual, line.size) and abs(line.size - above.size) < 1
        word = len(line.text.split(" ", 1)[0]) * (line.right - line.left) / len(line.text)
        is_full = above.right + word > right - line.size or line.text[:1].islower()
        is_open = not _SENTENCE_END.search(above.text)
        is_moved = line.left - above.left > line.size / 2 and len(paragraph) > 1
        hangs = _ITEM.match(paragraph[0].text) and line.left > paragraph[0].left + line.size / 2
        goes_on = hangs or (is_full and (is_open or not is_moved)) or line.size > LARGE * usual
        if is_near and goes_on and not _ITEM.match(line.text):
            paragraph.append(line)
        else:
            yield paragraph
            paragraph = [line]
    if paragraph:
        yield paragraph

"""The order in which a page of a PDF is read: columns one after the other, and tables in rows.

A PDF says where each word stands, and nothing of columns, tables or paragraphs; and words may be
drawn in any order. So only the places count. Lines with room between them from top to bottom are a
grid: columns where each of them is prose, else a table.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import pairwise
from statistics import median

from crag.text.blocks import Block, Item, Row, escaped, label_of
from crag.text.pdf_page import Line, SeenText, Segment, joined, lines_of
from crag.text.tables import with_labels, with_one_head

_ITEM = re.compile(
    r"(?P<bullet>[-*+•‣–▪●◦■])\s+|(?P<number>\d{1,3})[.)]\s+|\(?(?:\d{1,3}|\w)[.)]\s+"
)
_HYPHENATED = re.compile(r"(?<=[a-zà-ÿ])-$")
_SENTENCE_END = re.compile(r"[.!?…:;。！？][\"'”’»)\]]*$")
_TIGHT, _NEAR = 1.4, 3.2
"""Distance of two lines, in font sizes, up to which they may be one cell, or rows of one table."""
_FLOWING, _WIDE = 0.25, 8
"""Share of the lines of prose that begin with a small letter at least, where letters are small or
capital, and font sizes that they are wide."""
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
    """
    lines = [_with_mark(line, sizes[-1]) for line in lines]
    first = at = 0
    while at < len(lines):
        end, columns = _grid(lines, at, LARGE * sizes[-1])
        sides = list(_sides(lines[at:end], columns))
        is_prose = bool(sides) and all(map(_is_prose, sides))
        if is_prose and not any(seen.rules(lines[at:end])):
            yield from _texts(lines[first:at], page, sizes)
            for side in sides:
                yield from blocks_of_lines(side, seen, page, sizes)
            first = at = end
            continue
        start, end = _table(lines, at, end, columns)
        if rows := _rows(lines[start:end], seen, is_prose=is_prose):
            yield from _texts(lines[first:start], page, sizes)
            table = [Row(row, page, page) for row in rows]
            # One of two columns may go on from the page before, unless it is a form.
            has_head = len(columns) > _FEWEST or rows[0][0].endswith(":")
            head_of = with_one_head if has_head else with_labels
            yield Block("table", page, page, rows=head_of(table))
            first = at = end
        else:
            at += 1
    yield from _texts(lines[first:], page, sizes)


def going_on(blocks: Iterable[Block]) -> list[Block]:
    """Join what goes on in the next column or on the next page."""
    joined_blocks: list[Block] = []
    for block in blocks:
        if not (joined_blocks and _goes_on(joined_blocks[-1], block)):
            joined_blocks.append(block)
    return joined_blocks


def _goes_on(before: Block, block: Block) -> bool:
    """Join two blocks, and return whether they are one.

    A paragraph goes on within a sentence, a list on the next page, and there a table with as many
    columns; its head, if it is repeated, is left out.
    """
    if before.kind != block.kind or (block.kind != "text" and before.last == block.first):
        return False
    match block.kind:
        case "text" if block.text[:1].islower() and not _SENTENCE_END.search(before.text):
            before.text = _together(before.text, block.text)
        case "list":
            before.items += block.items
        case "table" if len(before.rows[0].cells) == len(block.rows[0].cells):
            before.rows += block.rows[block.rows[0].cells == before.rows[0].cells :]
        case _:
            return False
    before.last = block.last
    return True


def _together(text: str, more: str) -> str:
    """Join two lines; a word that was cut at the end of the first one is whole again."""
    if _HYPHENATED.search(text) and more[:1].islower():
        return text[:-1] + more
    return f"{text} {more}".strip()


def _with_mark(line: Line, usual: float) -> Line:
    """Join the mark of an item with the item, and the number of a heading with the heading."""
    first = line[0]
    is_numbered = first.size > LARGE * usual and not re.search(r"[^\W\d_]", first.text)
    if len(line) > 1 and (is_numbered or _ITEM.fullmatch(f"{first.text} ")):
        return [joined(line[:2]), *line[2:]]
    return line


def _grid(lines: Sequence[Line], start: int, large: float) -> tuple[int, list[_Column]]:
    """Return where lines end that have columns, and the columns.

    No other line may cross them, nor one of a large size stand alone.
    """
    end, columns = start + 1, _columns(lines[start : start + 1])
    while (
        end < len(lines)
        and _distance(lines, end) < _NEAR
        and (
            len(lines[end]) > 1
            or (len(_places(lines[end][0], columns)) == 1 and lines[end][0].size <= large)
        )
    ):
        more = _columns(lines[start : end + 1])
        if len(more) < _FEWEST:
            break
        end, columns = end + 1, more
    return end, columns


def _columns(lines: Sequence[Line]) -> list[_Column]:
    """Return left and right of each column; few cells may stand over more than one."""
    cells = [one for line in lines for one in line]
    edges = sorted([(one.left, 1) for one in cells] + [(one.right, -1) for one in cells])
    best: list[_Column] = []
    for few in range(len(lines) // 5 + 1):
        depth, start, columns = 0, 0.0, list[_Column]()
        for x, change in edges:  # More than few cells stand in a column.
            if depth <= few < depth + change:
                start = x
            elif depth > few >= depth + change:
                columns.append((start, x))
            depth += change
        wide = sum(len(_places(cell, columns)) > 1 for cell in cells)
        if len(columns) > len(best) and wide <= len(cells) / 6:
            best = columns
    return best


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


def _sides(lines: Sequence[Line], columns: Sequence[_Column]) -> Iterator[list[Line]]:
    """Yield the lines of each column, if there are several."""
    for at in range(len(columns)) if len(columns) >= _FEWEST else ():
        yield lines_of(one for line in lines for one in line if _places(one, columns)[0] == at)


def _is_prose(lines: Sequence[Line]) -> bool:
    """Return whether lines are long, and often go on within a sentence."""
    texts = list(map(joined, lines))
    if len(texts) < _FEWEST:
        return False
    are_cased = any(one.text.lower() != one.text.upper() for one in texts)
    small = sum(one.text[0].islower() for one in texts[1:])
    widths = median((one.right - one.left) / one.size for one in texts)
    return widths > _WIDE and (not are_cased or small >= _FLOWING * (len(texts) - 1))


def _distance(lines: Sequence[Line], at: int) -> float:
    """Return how far a line stands below the one above it, in font sizes."""
    return (lines[at - 1][0].base - lines[at][0].base) / lines[at][0].size


def _table(
    lines: Sequence[Line], start: int, end: int, columns: Sequence[_Column]
) -> tuple[int, int]:
    """Return first and last line of what may be a table in a grid: cells beside each other.

    Lines above and below them, of one cell, belong to it where that cell is not in its first column
    or begins with a small letter.
    """
    several = [at for at in range(start, end) if len(lines[at]) > 1]
    if not several or len(columns) < _FEWEST:
        return start, start
    first, last = several[0], several[-1]

    def is_part(at: int) -> bool:
        return _places(lines[at][0], columns)[0] > 0 or lines[at][0].text[:1].islower()

    while first > start and _distance(lines, first) < _TIGHT and is_part(first - 1):
        first -= 1
    while last + 1 < end and _distance(lines, last + 1) < _TIGHT and is_part(last + 1):
        last += 1
    return first, last + 1


def _rows(lines: Sequence[Line], seen: SeenText, *, is_prose: bool) -> list[list[str]]:
    """Return the cells of a table, or nothing if it is none.

    Rules part its rows where there are many, and not only its head from the rest.
    """
    columns = _columns(lines)
    rules = seen.rules(lines) if lines else []
    rules = rules if sum(rules) >= (2 if is_prose else max(2, len(lines) / 4)) else []
    gaps = [above[0].base - line[0].base for above, line in pairwise(lines)]
    rows: list[list[list[Segment]]] = []
    for at, line in enumerate(lines):
        cells: list[list[Segment]] = [[] for _ in columns]
        for one in line:
            for place in _places(one, columns):
                cells[place].append(one)
        if at and (not rules[at - 1] if rules else _continues(cells, gaps, at - 1)):
            rows[-1] = [[*above, *more] for above, more in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    if sum(sum(map(bool, row)) > 1 for row in rows) < max(2, len(rows) / 2):
        return []
    said = [[list(map(joined, lines_of(cell))) for cell in row] for row in rows]
    alone = [sum(map(bool, row)) == 1 for row in said]  # Such may label the rows below.
    return [
        [_marked(cell, may_be_bold=one) for cell in row]
        for row, one in zip(said, alone, strict=True)
    ]


def _continues(cells: Sequence[Line], gaps: Sequence[float], at: int) -> bool:
    """Return whether a line goes on with the row above it."""
    firsts = [cell[0] for cell in cells if cell]
    if gaps[at] > _TIGHT * firsts[0].size:
        return False
    if max(gaps) > LARGE * gaps[at]:  # Rows stand farther apart than the lines of one.
        return True
    return not cells[0] and all(one.text[:1].islower() for one in firsts)


def _texts(lines: Sequence[Line], page: int, sizes: Sequence[float]) -> Iterator[Block]:
    """Yield headings, paragraphs and lists of a column."""
    items: list[Item] = []
    for paragraph in [*_paragraphs(list(map(joined, lines))), []]:
        text = reduce(_together, (line.text for line in paragraph), "")
        size = paragraph[0].size if paragraph else 0
        is_heading = size > LARGE * sizes[-1] and len(text) < _LONGEST_HEADING
        if (mark := _ITEM.match(text)) and not (is_heading or _are_bold(paragraph)):
            said = text[mark.end() :] if mark["bullet"] or mark["number"] else text
            label = f"{mark['number']}." if mark["number"] else "-"
            items.append(Item(label, [Block("text", page, page, escaped(said))]))
            continue
        if items:
            yield Block("list", page, page, items=items)
            items = []
        level = 1 + sum(other > size + _ALIKE for other in sizes[:-1]) if is_heading else 0
        said = _marked(paragraph, may_be_bold=not is_heading)
        if text:
            yield Block("heading" if is_heading else "text", page, page, said, level)


def _are_bold(lines: Sequence[Segment]) -> bool:
    return all(line.is_bold for line in lines)


def _marked(lines: Sequence[Segment], *, may_be_bold: bool) -> str:
    text = escaped(reduce(_together, (line.text for line in lines), ""))
    return f"**{text}**" if may_be_bold and lines and _are_bold(lines) else text


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
        is_field = label_of(line.text) and label_of(paragraph[0].text)
        is_below = _are_bold(paragraph) and not line.is_bold
        if is_near and goes_on and not (is_field or is_below or _ITEM.match(line.text)):
            paragraph.append(line)
        else:
            yield paragraph
            paragraph = [line]
    if paragraph:
        yield paragraph

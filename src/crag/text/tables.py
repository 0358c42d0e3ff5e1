"""The tables of whatever format: one row as head, and in each row the labels it stands below."""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile, zip_longest

from crag.text.blocks import Row

_VALUE = re.compile(r"[€$£+-]?\s?(?!(?:19|20)\d\d\b)\d")
"""How a value begins that is no year."""
_LETTER = re.compile(r"[^\W\d_]")


def one_head(rows: Sequence[Row]) -> Row:
    """Join the rows of a head: what stands above several columns names each of them."""
    width = max(len(row.cells) for row in rows)
    columns = ([row.cells[at] for row in rows if at < len(row.cells)] for at in range(width))
    cells = [" ".join(filter(None, dict.fromkeys(column))) for column in columns]
    return Row(cells, rows[0].first, rows[-1].last)


def with_one_head(rows: Sequence[Row]) -> list[Row]:
    """Join a head of two rows: cells of the first one go over several columns of the second.

    So they do without being merged where the columns next to them have no name, and those of the
    second row have the same ones. Where the first of two columns has a colon, or the second begins
    with a value, a head without names stands above.
    """
    label, *values = rows[0].cells
    if len(values) == 1 and (label.endswith(":") or _VALUE.match(values[0])):
        return with_labels([Row([""], rows[0].first, rows[0].first), *rows])
    head, below = (rows[0].cells, rows[1].cells) if rows[2:] else ([], [])
    if "" in head and all(below[1:]) and len(set(below)) < len(below):
        head = [*head]
        for at in range(1, len(head)):
            head[at] = head[at] or head[at - 1]
    goes_over = any(cell and cell == after for cell, after in pairwise(head))
    if goes_over and len(set(head)) > 1 and is_head(below):
        return with_labels([one_head([rows[0]._replace(cells=head), rows[1]]), *rows[2:]])
    return with_labels(rows)


def is_head(row: Sequence[str]) -> bool:
    """Return whether a row may be the head of a table: it has no numbers."""
    return not any(re.search(r"\d", cell) for cell in row)


def with_labels(rows: Sequence[Row]) -> list[Row]:
    """Write what labels several rows of a table, below its head, into each of them.

    That is a row of one cell above others, or what stands above the empty cells of a group.
    """
    head, *below = rows
    width, band, labelled = max(len(row.cells) for row in rows), "", list[Row]()
    for row, after in zip_longest(below, below[1:]):
        if after and (title := _band(row.cells, width)):
            band = title
        else:
            first = ": ".join(filter(None, (band, row.cells[0])))
            labelled.append(row._replace(cells=[first, *row.cells[1:]]))
    columns, above = groups([row.cells for row in labelled]), list[str]()
    for at, row in enumerate(labelled):
        above = with_group(row.cells, above, columns)
        labelled[at] = row._replace(cells=above)
    return [head, *labelled]


def groups(rows: Sequence[Sequence[str]]) -> int:
    """Return in how many of the first columns an empty cell stands for what is above it.

    There at least half of the cells are empty, but not the first one, and none says the same as the
    one above it; and every row has what is labelled.
    """
    for at, column in enumerate(zip_longest(*rows, fillvalue="")):
        if all(column):
            return at
        said = [cell for cell in column if cell]
        is_group = column[0] and 2 * len(said) <= len(column)
        if not is_group or any(above == cell for above, cell in pairwise(said)):
            break
    return 0


def with_group(row: Sequence[str], above: Sequence[str], columns: int) -> list[str]:
    """Return a row that says in its first columns what the one above it does, where it is empty."""
    empty = len(list(takewhile(lambda cell: not cell, row[:columns])))
    return [*above[:empty], *row[empty:]]


def _band(cells: Sequence[str], width: int) -> str:
    """Return what a row says that is one cell, by being repeated, alone, or bold and alone."""
    first, *others = cells
    is_bold = first.startswith("**") and first.endswith("**") and not any(others)
    is_one = not others if len(cells) < width else set(others) == {first} and len(others) > 1
    return first.strip("*: ") if (is_bold or is_one) and _LETTER.search(first) else ""

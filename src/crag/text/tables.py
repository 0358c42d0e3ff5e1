"""The heads of tables, of whatever format: one row that names each column."""

import re
from collections.abc import Sequence
from itertools import pairwise

from crag.text.blocks import Row

_VALUE = re.compile(r"[€$£+-]?\s?(?!(?:19|20)\d\d\b)\d")
"""How a value begins that is no year."""


def one_head(rows: Sequence[Row]) -> Row:
    """Join the rows of a head: what stands above several columns names each of them."""
    width = max(len(row.cells) for row in rows)
    columns = ([row.cells[at] for row in rows if at < len(row.cells)] for at in range(width))
    cells = [" ".join(filter(None, dict.fromkeys(column))) for column in columns]
    return Row(cells, rows[0].first, rows[-1].last)


def with_one_head(rows: Sequence[Row]) -> list[Row]:
    """Join a head of two rows: cells of the first one go over several columns of the second.

    So they do without being merged where the columns next to them have no name, and those of the
    second row have the same ones. Where the second of two columns begins with a value, a head
    without names stands above.
    """
    if len(rows[0].cells) == 2 and _VALUE.match(rows[0].cells[1]):  # noqa: PLR2004
        return [Row([""], rows[0].first, rows[0].first), *rows]
    head, below = (rows[0].cells, rows[1].cells) if rows[2:] else ([], [])
    if "" in head and all(below[1:]) and len(set(below)) < len(below):
        head = [*head]
        for at in range(1, len(head)):
            head[at] = head[at] or head[at - 1]
    goes_over = any(cell and cell == after for cell, after in pairwise(head))
    if goes_over and len(set(head)) > 1 and is_head(below):
        return [one_head([rows[0]._replace(cells=head), rows[1]]), *rows[2:]]
    return list(rows)


def is_head(row: Sequence[str]) -> bool:
    """Return whether a row may be the head of a table: it has no numbers."""
    return not any(re.search(r"\d", cell) for cell in row)

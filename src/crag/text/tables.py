"""Rows of tables with merged cells, as rows that can each be read alone."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crag.text.blocks import Row


class Cell(NamedTuple):
    """A cell, and how many columns and rows it goes over."""

    text: str
    width: int = 1
    height: int = 1


def spread(rows: Iterable[Sequence[Cell]]) -> Iterator[list[str]]:
    """Yield the texts of each row; a cell over several rows or columns stands in each."""
    going_on: dict[int, tuple[str, int]] = {}
    for row in rows:
        written: list[str] = []
        for cell in [*row, None]:
            while (column := len(written)) in going_on:
                text, more = going_on.pop(column)
                if more > 1:
                    going_on[column] = text, more - 1
                written.append(text)
            if cell is not None:
                for _ in range(cell.width):
                    if cell.height > 1:
                        going_on[len(written)] = cell.text, cell.height - 1
                    written.append(cell.text)
        yield written


def one_head(rows: Sequence[Row]) -> Row:
    """Join the rows of a head: what stands above several columns names each of them."""
    width = max(len(row.cells) for row in rows)
    columns = ([row.cells[at] for row in rows if at < len(row.cells)] for at in range(width))
    cells = [" ".join(filter(None, dict.fromkeys(column))) for column in columns]
    return Row(cells, rows[0].first, rows[-1].last)

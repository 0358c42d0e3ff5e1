"""Merged cells: each row of a table has all its labels, whatever the format."""

from collections.abc import Callable
from pathlib import Path

import docx
import pytest
from pptx import Presentation
from xlsxwriter import Workbook

from tests.documents.reading import only

Span = tuple[int, int, int, int]
"""First row and column, last row and column."""
ROWS = [
    ["Region", "Weight", "Delivery", ""],
    ["", "", "Standard", "Express"],
    ["North", "up to 50 kg", "31", "58"],
    ["", "50 to 200 kg", "44", "83"],
    ["Islands", "up to 50 kg", "62", ""],
    ["", "50 to 200 kg", "97", "171"],
]
SPANS: list[Span] = [
    (0, 0, 1, 0), (0, 1, 1, 1), (0, 2, 0, 3), (2, 0, 3, 0), (4, 0, 5, 0), (4, 2, 4, 3),
]  # fmt: skip
READ = [
    "| Region | Weight | Delivery Standard | Delivery Express |",
    "| --- | --- | --- | --- |",
    "| North | up to 50 kg | 31 | 58 |",
    "| North | 50 to 200 kg | 44 | 83 |",
    "| Islands | up to 50 kg | 62 | 62 |",
    "| Islands | 50 to 200 kg | 97 | 171 |",
]


def write_docx(path: Path) -> None:
    document = docx.Document()
    table = document.add_table(len(ROWS), 4)
    for top, left, bottom, right in SPANS:
        table.cell(top, left).merge(table.cell(bottom, right))
    for at, row in enumerate(ROWS):
        for column, text in enumerate(row):
            if text:
                table.cell(at, column).text = text
    document.save(str(path))


def write_pptx(path: Path) -> None:
    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    table = slide.shapes.add_table(len(ROWS), 4, 0, 0, 9, 9).table
    for cell, text in zip(table.iter_cells(), sum(ROWS, []), strict=True):  # noqa: RUF017
        cell.text = text
    for top, left, bottom, right in SPANS:
        table.cell(top, left).merge(table.cell(bottom, right))
    deck.save(str(path))


def write_xlsx(path: Path) -> None:
    with Workbook(path) as workbook:
        sheet = workbook.add_worksheet("Tariffs")
        for at, row in enumerate(ROWS):
            for column, text in enumerate(row):
                sheet.write(at + 2, column + 1, text)
        for top, left, bottom, right in SPANS:
            sheet.merge_range(top + 2, left + 1, bottom + 2, right + 1, ROWS[top][left])


def spans() -> list[list[tuple[str, int, int]]]:
    """Return the texts of the rows, each with its width and height, without what they cover."""
    sizes = {
        (top, left): (right - left + 1, bottom - top + 1) for top, left, bottom, right in SPANS
    }
    covered = {
        (at, column)
        for top, left, bottom, right in SPANS
        for at in range(top, bottom + 1)
        for column in range(left, right + 1)
    } - sizes.keys()
    return [
        [(text, *sizes.get((at, column), (1, 1)))
         for column, text in enumerate(row) if (at, column) not in covered]
        for at, row in enumerate(ROWS)
    ]  # fmt: skip


def write_html(path: Path) -> None:
    rows = [
        "".join(f"<td colspan={wide} rowspan={high}>{text}</td>" for text, wide, high in row)
        for row in spans()
    ]
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    path.write_text(f"<p>Prices.</p><table>{table}</table>")


WRITERS: dict[str, Callable[[Path], None]] = {
    "docx": write_docx, "pptx": write_pptx, "xlsx": write_xlsx, "html": write_html,
}  # fmt: skip


@pytest.mark.parametrize("kind", WRITERS)
def test_a_merged_cell_labels_each_row_and_column(kind: str, folder: Path) -> None:
    path = folder / f"tariffs.{kind}"
    WRITERS[kind](path)
    lines = [line for line in only(path).text.splitlines() if line.startswith("|")]
    if kind == "html":  # Without a head of its own, the first row is the head.
        assert lines[-4:] == READ[-4:]
    else:
        assert lines == READ

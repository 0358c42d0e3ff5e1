"""Merged cells: each row of a table has all its labels, whatever the format."""

import zipfile
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


def write_html(path: Path) -> None:
    path.write_text(
        f"<p>Prices.</p><table>{''.join(rows_of('tr', 'td', 'colspan', 'rowspan'))}</table>"
    )


def write_ods(path: Path) -> None:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    rows = "".join(
        rows_of(
            "table:table-row", "table:table-cell", "table:number-columns-spanned",
            "table:number-rows-spanned", "<text:p>{}</text:p>", "<table:covered-table-cell/>",
        )
    )  # fmt: skip
    empty = "<table:table-cell/>"
    rest = f'<table:table-row table:number-rows-repeated="9999">{empty}</table:table-row>'
    content = (
        f"<office:document-content {names}><office:body><office:spreadsheet>"
        f'<table:table table:name="Tariffs">{rows}{rest}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", content)


def rows_of(
    row_tag: str, cell_tag: str, across: str, down: str, text: str = "{}", covered: str = ""
) -> list[str]:
    spans = {
        (top, left): (bottom - top + 1, right - left + 1) for top, left, bottom, right in SPANS
    }
    hidden = {
        (at, column)
        for top, left, bottom, right in SPANS
        for at in range(top, bottom + 1)
        for column in range(left, right + 1)
    } - spans.keys()
    rows = []
    for at, row in enumerate(ROWS):
        cells = ""
        for column, value in enumerate(row):
            height, width = spans.get((at, column), (1, 1))
            size = f' {across}="{width}" {down}="{height}"'
            cell = f"<{cell_tag}{size}>{text.format(value)}</{cell_tag}>"
            cells += covered if (at, column) in hidden else cell
        rows.append(f"<{row_tag}>{cells}</{row_tag}>")
    return rows


WRITERS: dict[str, Callable[[Path], None]] = {
    "docx": write_docx, "pptx": write_pptx, "xlsx": write_xlsx, "html": write_html,
    "ods": write_ods,
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

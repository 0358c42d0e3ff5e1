"""Tables and sheets: values as they are shown, titles, and all labels of merged cells."""

import datetime as dt
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import pytest
from pptx import Presentation
from xlsxwriter import Workbook

from crag.documents.office import shown
from tests.documents.reading import only

MORNING = dt.datetime(2024, 3, 5, 9, 30)  # noqa: DTZ001 - workbooks know no time zones
SHOWN: list[tuple[Any, str, str]] = [
    (0.195, "0.0%", "19.5%"), (0.5, "0 %", "50 %"), (-0.2, "0%;(0%)", "-20%"),
    (742.0, "00000", "00742"), (12.0, '"Nr. "000', "Nr. 012"),
    (7.0, "00.0", "07.0"),
    (dt.timedelta(hours=36), "[h]:mm", "36:00"),
    (dt.timedelta(hours=36, seconds=5), "", "36:00:05"), (dt.time(6, 5), "h:mm", "06:05"),
    (1234.0, "000-000", "1234"), (1234.5, '"$"#,##0.00', "$1,234.50"),
    (dt.date(2024, 3, 5), "dd.mm.yyyy", "2024-03-05"),
    (MORNING, "", "2024-03-05 09:30"),
    (3.5, '0.0" kg"', "3.5 kg"), (3.0, "0.##", "3"), (3.25, "0.##", "3.25"),
    (1234.5, '#,##0.00 "EUR"', "1,234.50 EUR"), (1234.5, "0.00E+00", "1234.5"),
    (1234.5, "#,##0.00 [$€-407]", "1,234.50 €"), (5.0, "_-* #,##0.00 _€_-", "5.00"),
    (0.25, "# ?/?", "0.25"), (1.23e7, '0.0,,"M"', "12.3M"), (1500.0, "0,", "2"),
    (45000.0, "General", "45000"), (5.0, "", "5"), (-5.5, "0.0", "-5.5"),
    ("00742", "@", "00742"), (True, "0", "True"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "code", "text"), SHOWN)
def test_a_cell_is_read_as_the_sheet_shows_it(value: Any, code: str, text: str) -> None:
    assert shown(value, code if code != "General" else "") == text


def test_formats_are_those_of_the_cells(folder: Path) -> None:
    cells = [one for one in SHOWN if one[1] and isinstance(one[0], float) and one[1] != "# ?/?"]
    with Workbook(folder / "a.xlsx") as workbook:
        workbook.add_worksheet("Empty")
        sheet = workbook.add_worksheet("Parts & more")
        sheet.write_row(3, 2, ["name", "value"])
        for row, (value, code, _) in enumerate(cells, start=4):
            sheet.write(row, 2, f"part {row}")
            sheet.write(row, 3, value, workbook.add_format({"num_format": code}))
    lines = only(folder / "a.xlsx").text.splitlines()
    assert lines[-len(cells) :] == [
        f"| part {row} | {text} |" for row, (_, _, text) in enumerate(cells, start=4)
    ]


def test_a_table_below_another_one_has_its_own_head(folder: Path) -> None:
    rows: list[list[Any]] = [
        ["Openings"], ["valve", "winter"], ["V1", 3], [], ["V2", 4], [],
        ["Pumps", "", ""], ["pump", "flow", ""], ["", "low", "low"], ["P1", 2, 3],
    ]  # fmt: skip
    with Workbook(folder / "a.xlsx") as workbook:
        sheet = workbook.add_worksheet("Parts")
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    assert only(folder / "a.xlsx").text == (
        "## Parts\n\nOpenings\n\n| valve | winter |  |\n| --- | --- | --- |\n| V1 | 3 |  |\n"
        "| V2 | 4 |  |\n\n"
        "Pumps\n\n| pump | flow low | flow low |\n| --- | --- | --- |\n| P1 | 2 | 3 |"
    )


def test_a_sheet_of_ods_is_read_but_for_hidden_ones(folder: Path) -> None:
    def table(name: str, style: str) -> str:
        cell = f'<table:table-cell office:value-type="string"><text:p>{name}</text:p>'
        row = f"<table:table-row>{cell}</table:table-cell></table:table-row>"
        return f'<table:table table:name="{name}" table:style-name="{style}">{row}</table:table>'

    spaces = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
    names = " ".join(
        f'xmlns:{n}="{spaces.format(n)}"' for n in ("office", "table", "text", "style")
    )
    hides = '<style:style style:name="b"><style:table-properties table:display="false"/>'
    content = (
        f"<office:document-content {names}><office:automatic-styles>{hides}</style:style>"
        f"</office:automatic-styles><office:body><office:spreadsheet>{table('Mill', 'a')}"
        f"{table('Secret', 'b')}</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(folder / "a.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", f'<m:manifest xmlns:m="{spaces.format("m")}"/>')
        archive.writestr("content.xml", content)
    assert only(folder / "a.ods").text == "## Mill\n\nMill"


Span = tuple[int, int, int, int]
"""First row and column, last row and column."""
ROWS = [
    ["Region", "Weight", "Delivery", ""],
    ["", "", "Standard", "Express"],
    ["North", "up to 50 kg", "31", "58"],
    ["", "50 to 200 kg", "44", "83"],
    ["Islands", "up to 50 kg", "62", ""],
    ["", "50 to 200 kg", "97", "171"],
    ["Abroad", "", "", ""],
    ["Norway", "up to 50 kg", "75", "140"],
]
SPANS: list[Span] = [
    (0, 0, 1, 0), (0, 1, 1, 1), (0, 2, 0, 3), (2, 0, 3, 0), (4, 0, 5, 0), (4, 2, 4, 3),
    (6, 0, 6, 3),
]  # fmt: skip
READ = [
    "| Region | Weight | Delivery Standard | Delivery Express |",
    "| --- | --- | --- | --- |",
    "| North | up to 50 kg | 31 | 58 |",
    "| North | 50 to 200 kg | 44 | 83 |",
    "| Islands | up to 50 kg | 62 | 62 |",
    "| Islands | 50 to 200 kg | 97 | 171 |",
    "| Abroad: Norway | up to 50 kg | 75 | 140 |",
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
    assert lines == READ

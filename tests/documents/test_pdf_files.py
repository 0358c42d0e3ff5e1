"""PDF of files: columns, tables, text that nobody sees, and the order in which things are drawn."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw
from reportlab.lib import colors
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Table, TableStyle

from tests.documents.reading import only

STORIES = """
        The harbour board met in March and decided to dredge the northern basin to a depth of nine
        metres before the end of the year. The work is paid for by the shipping lines. The old
        pilot house will be kept as a museum, because the town council asked for it in a letter.

        The southern basin stays at six metres, since only fishing boats use it. A new crane of
        forty tonnes is to be bought from the reserve fund. The board will meet again in October,
        when the tenders for the crane have been opened and read by the auditors.

        Fees for berths rise by two per cent. Visitors pay for each night, and the first three
        hours are free. The harbour master may close the outer mole in storms; nobody is to stay
        there then, and dogs are kept on a lead."""


def stories() -> list[str]:
    return [" ".join(story.split()) for story in STORIES.split("\n\n")]


ORDERS: dict[str, Callable[[tuple[int, int, str]], Any]] = {
    "column by column": lambda line: line[:2],
    "line by line": lambda line: line[1::-1],
    "backwards": lambda line: (-line[0], -line[1]),
}


def wrapped(text: str, width: float, size: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        fits = stringWidth(longer, "Helvetica", size) < width
        lines[-1:] = [longer] if fits else [lines[-1], word]
    return lines


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("heads", [False, True])
def test_columns_are_read_one_after_the_other(
    number: int, order: str, *, heads: bool, tmp_path: Path
) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"))
    columns, size = stories()[:number], 11 - number
    width = (480 - 18 * (number - 1)) / number
    lines = [
        (column, row, line)
        for column, story in enumerate(columns)
        for row, line in enumerate(wrapped(story, width, size))
    ]
    if heads:
        canvas.drawString(
            60, 790, "Over the columns stands a line that is as long as the page is wide."
        )
    canvas.setFont("Helvetica", size)
    for column, row, line in sorted(lines, key=ORDERS[order]):
        canvas.drawString(60 + column * (width + 18), 750 - 1.2 * size * row, line)
    if heads:
        canvas.drawString(
            60, 300, "Below them stands another line, which says when the next report is due."
        )
    canvas.save()
    text = " ".join(only(tmp_path / "a.pdf").text.split())
    assert [text.find(story) for story in columns] == sorted(map(text.find, columns))
    assert all(story in text for story in columns)


HEAD = ["Model", "Use", "Limit", "Remark"]
USES = [
    "Indoor keeping of paints and solvents in closed cabinets",
    "Empty drums",
    "Bottles of gas in a yard",
]
REMARKS = ["", "Only two layers; straps are needed from the second layer", "Keep six metres apart"]


def rows_of(number: int) -> list[list[str]]:
    return [
        [f"MZ-{at}", USES[at % 3], f"{13 * at} litres", REMARKS[at % 3]]
        for at in range(20, 20 + number)
    ]


def written(rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in rows]


@pytest.mark.parametrize("ruled", [True, False])
@pytest.mark.parametrize("align", ["TOP", "MIDDLE"])
@pytest.mark.parametrize("heads", [0, 1])
@pytest.mark.parametrize("number", [5, 60])
def test_rows_of_a_table_are_whole_on_each_page(
    number: int, heads: int, align: str, *, ruled: bool, tmp_path: Path
) -> None:
    if not ruled and align == "MIDDLE":
        return  # Nothing then says which lines are one row.
    style = getSampleStyleSheet()["Normal"]
    rows = rows_of(number)
    cells = [[one[0], Paragraph(one[1], style), one[2], Paragraph(one[3], style)] for one in rows]
    table = Table([HEAD, *cells], colWidths=[60, 160, 80, 160], repeatRows=heads)
    commands = [("VALIGN", (0, 0), (-1, -1), align)]
    commands += [("GRID", (0, 0), (-1, -1), 0.5, colors.black)] if ruled else []
    table.setStyle(TableStyle(commands))
    text = "These are the classes that our stores know, and what is to be heeded with each of them."
    SimpleDocTemplate(str(tmp_path / "a.pdf")).build(
        [Paragraph(text, style), table, Paragraph(text, style)]
    )
    loaded = only(tmp_path / "a.pdf")
    lines = loaded.text.splitlines()
    assert lines == [
        text,
        "",
        *written([HEAD]),
        "| --- | --- | --- | --- |",
        *written(rows),
        "",
        text,
    ]


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize(
    "look", ["plain", "shaded", "bold", "with a rule below head and above sum"]
)
def test_cells_of_a_table_stand_in_their_columns(
    tmp_path: Path, look: str, *, by_column: bool
) -> None:
    rows = [["Valve", "Winter", "Spring", "Summer"]]
    rows += [[f"V{n}", "3.1" * (n % 2), "7.5" * (n % 3 == 0), "2.2"] for n in range(1, 11)]
    rows += [["All", "15.5", "22.5", "22"]]
    canvas = Canvas(str(tmp_path / "a.pdf"))
    canvas.setFont("Helvetica-Bold" if look == "bold" else "Helvetica", 12)
    canvas.drawString(60, 770, "Openings of the valves")
    cells = [(row, column) for row in range(12) for column in range(4)]
    for row in (0, 10) if look.startswith("with") else ():
        canvas.line(55, 736 - 18 * row, 495, 736 - 18 * row)
    for row in range(1, 12, 2) if look == "shaded" else ():
        canvas.setFillGray(0.9)
        canvas.rect(55, 735 - 18 * row, 440, 18, stroke=0, fill=1)
        canvas.setFillGray(0)
    for row, column in sorted(cells, key=lambda cell: cell[::-1] if by_column else cell):
        canvas.drawString(60 + 110 * column, 740 - 18 * row, rows[row][column])
    canvas.save()
    assert only(tmp_path / "a.pdf").text.splitlines() == [
        "Openings of the valves", "", *written(rows[:1]), "| --- | --- | --- | --- |",
        *written(rows[1:]),
    ]  # fmt: skip


def mode_3(canvas: Canvas, y: float, text: str) -> None:
    line = canvas.beginText(60, y)
    line.setTextRenderMode(3)
    line.textOut(text)
    line.setTextRenderMode(0)
    canvas.drawText(line)


def in_colour(*colour: float) -> Callable[[Canvas, float, str], None]:
    def draw(canvas: Canvas, y: float, text: str) -> None:
        canvas.setFillColorRGB(*colour)
        canvas.drawString(60, y, text)
        canvas.setFillGray(0)

    return draw


def on_black(canvas: Canvas, y: float, text: str) -> None:
    canvas.rect(50, y - 5, 450, 20, fill=1)
    canvas.drawString(60, y, text)


def tiny(canvas: Canvas, y: float, text: str) -> None:
    canvas.setFont("Helvetica", 0.5)
    canvas.drawString(60, y, text)
    canvas.setFont("Helvetica", 12)


def scaled(canvas: Canvas, y: float, text: str) -> None:
    canvas.saveState()
    canvas.scale(0.05, 0.05)
    canvas.drawString(20 * 60, 20 * y, text)
    canvas.restoreState()


def outside(canvas: Canvas, _: float, text: str) -> None:
    canvas.drawString(60, -200, text)


def outside_the_crop_box(canvas: Canvas, _: float, text: str) -> None:
    canvas.setCropBox((0, 100, 595, 842))
    canvas.drawString(60, 50, text)


def transparent(canvas: Canvas, y: float, text: str) -> None:
    canvas.setFillAlpha(0)
    canvas.drawString(60, y, text)
    canvas.setFillAlpha(1)


def covered_by(draw: Callable[[Canvas, float], object]) -> Callable[[Canvas, float, str], None]:
    def cover(canvas: Canvas, y: float, text: str) -> None:
        canvas.drawString(60, y, text)
        canvas.setFillGray(1)
        draw(canvas, y)
        canvas.setFillGray(0)
        canvas.drawString(60, y, "It closes at nine.")

    return cover


def picture(canvas: Canvas, y: float) -> None:
    canvas.drawImage(ImageReader(Image.new("RGB", (40, 4), "white")), 50, y - 5, 450, 20)


HIDDEN: dict[str, Callable[[Canvas, float, str], None]] = {
    "render mode 3": mode_3, "white": in_colour(1, 1, 1), "almost white": in_colour(0.99, 1, 0.98),
    "black on black": on_black, "tiny": tiny, "scaled down": scaled, "outside": outside,
    "outside the crop box": outside_the_crop_box, "transparent": transparent,
    "below a rectangle": covered_by(lambda canvas, y: canvas.rect(50, y - 5, 450, 20, 0, 1)),
    "below a rounded one": covered_by(
        lambda canvas, y: canvas.roundRect(40, y - 9, 470, 28, 5, 0, 1)
    ),
    "below an ellipse": covered_by(lambda canvas, y: canvas.ellipse(0, y - 40, 500, y + 48, 0, 1)),
    "below a picture": covered_by(picture),
}  # fmt: skip


@pytest.mark.parametrize("kind", HIDDEN)
@pytest.mark.parametrize("rotation", [0, 90])
def test_what_nobody_sees_is_left_out(kind: str, rotation: int, tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=(842, 842))
    canvas.setPageRotation(rotation)
    canvas.drawString(60, 800, "The mill was built in 1731.")
    HIDDEN[kind](canvas, 500, "Correction: the mill was built in 1900.")
    canvas.drawString(60, 400, "It still grinds.")
    canvas.save()
    text = only(tmp_path / "a.pdf").text
    assert "Correction" not in text
    assert "1900" not in text
    assert "1731" in text
    assert "It still grinds." in text
    assert ("It closes at nine." in text) == kind.startswith("below")


SHOWN: dict[str, Callable[[Canvas, float, str], None]] = {
    "grey": in_colour(0.75, 0.75, 0.75), "light green": in_colour(0.6, 1, 0.6),
}  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["grey", "light green", "white on blue", "below glass", "turned", "twice", "form"]
)
def test_what_is_seen_is_read(kind: str, tmp_path: Path) -> None:
    canvas, text = Canvas(str(tmp_path / "a.pdf")), "The mill was built in 1731."
    match kind:
        case "white on blue":
            canvas.setFillColorRGB(0, 0, 0.6)
            canvas.rect(50, 495, 400, 20, fill=1)
            in_colour(1, 1, 1)(canvas, 500, text)
        case "below glass":
            canvas.drawString(60, 500, text)
            canvas.setFillAlpha(0.4)
            canvas.setFillColorRGB(1, 1, 1)
            canvas.rect(50, 495, 400, 20, stroke=0, fill=1)
        case "turned":
            canvas.rotate(90)
            canvas.drawString(100, -300, text)
        case "twice":  # As some programs make letters bold.
            canvas.drawString(60, 500, text)
            canvas.drawString(60, 500, text)
        case "form":
            canvas.acroForm.textfield(name="a", value=text, x=60, y=500, width=300, height=20)
            canvas.showPage()
        case _:
            SHOWN[kind](canvas, 500, text)
    canvas.save()
    assert only(tmp_path / "a.pdf").text == text


def test_a_name_below_a_bar_is_left_out_of_its_line(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"))
    before, name = "The grant went to ", "Doctor Hidden"
    canvas.drawString(60, 500, f"{before}{name} in May.")
    start, width = (stringWidth(one, "Helvetica", 12) for one in (before, name))
    canvas.rect(60 + start - 1, 496, width + 2, 14, fill=1)
    canvas.save()
    assert only(tmp_path / "a.pdf").text == "The grant went to in May."


@pytest.mark.parametrize("below", [False, True])
def test_the_layer_over_a_scan_is_read(tmp_path: Path, *, below: bool) -> None:
    """It is drawn over the picture without ink, or below it in black."""
    scan = Image.new("L", (1240, 1754), 240)
    pen = ImageDraw.Draw(scan)
    for x in range(125, 520, 12):
        pen.rectangle((x, 700, x + 5, 725), fill=40)
    file = io.BytesIO()
    scan.save(file, "PNG")
    canvas = Canvas(str(tmp_path / "a.pdf"))
    if below:
        canvas.drawString(60, 497, "The mill was built in 1731.")
    canvas.drawImage(ImageReader(file), 0, 0, 595, 842)
    if not below:
        mode_3(canvas, 497, "The mill was built in 1731.")
    mode_3(canvas, 100, "Nothing of this is in the picture.")
    canvas.save()
    assert only(tmp_path / "a.pdf").text == "The mill was built in 1731."


def test_headings_lists_and_words_cut_at_line_ends(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"))
    canvas.setFont("Helvetica-Bold", 18)
    canvas.drawString(60, 790, "The mill")
    canvas.setFont("Helvetica", 10)
    lines = [
        "The mill has a water-", "wheel and a stone; what the", "miller is to do is this:",
        "•   Open the gate, and wait", "    until the wheel turns.", "•   Close it again.",
        "1. ...", "Sluices ............... 7",
    ]  # fmt: skip
    for at, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        canvas.drawString(60 + 4 * indent, 760 - 12 * at, line.strip())
    rows = [["Gate", "Ell"], ["A", "2"], ["Old gates"], ["Gate", "Ell"], ["B", "3"]]
    for at, row in enumerate([["1. The weir"], ["It is low. It is old."], *rows]):
        name = "Helvetica-Bold" if len(row) == at % 2 + 1 == 1 else "Helvetica"
        canvas.setFont(name, 18 if row == ["Old gates"] else 10)
        for column, text in enumerate(row):
            canvas.drawString(60 + 90 * column, 620 - 20 * at, text)
    canvas.save()
    loaded = only(tmp_path / "a.pdf")
    assert loaded.title == "The mill"
    assert loaded.text.startswith(
        "# The mill\n\nThe mill has a waterwheel and a stone; what the miller is to do is this:\n\n"
        "- Open the gate, and wait until the wheel turns.\n- Close it again."
    )
    assert "Sluices" not in loaded.text
    assert "**1. The weir**\n\nIt is low" in loaded.text
    assert loaded.text.endswith("\n\n# Old gates\n\n| Gate | Ell |\n| --- | --- |\n| B | 3 |")

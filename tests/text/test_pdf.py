"""PDF as text and as pictures: pages of the web, files of an index, scans."""

import io
import socket
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont
from pypdf import PdfReader, PdfWriter
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from crag.documents.loaders import load
from crag.documents.sources import Unusable
from crag.errors import ContentError
from crag.text.blocks import Block, text_of
from crag.text.pdf import read_pdf, read_web_pdf, without_heads
from crag.text.pdf_page import Segment
from crag.text.pdf_picture import picture_of_page
from tests.web.site import PARAGRAPHS, pdf

read_web = partial(read_web_pdf, most_pages=1000, most_characters=1_000_000)
READERS = pytest.mark.parametrize("read", [read_pdf, read_web])
Found = tuple[str, list[str]] | tuple[str, list[Block]]
Read = Callable[[bytes], Found]


def said(found: Found) -> str:
    """Return what was read, pages apart."""
    parts = (one if isinstance(one, str) else text_of([one]) for one in found[1])
    return "\n\n".join(filter(None, parts))


def written(pages: list[str], title: str = "") -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, invariant=True)
    canvas.setTitle(title)
    for text in pages:
        lines = canvas.beginText(72, 720)
        lines.textLines(text)
        canvas.drawText(lines)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


@READERS
def test_title_and_pages(read: Read) -> None:
    assert said(read(written(["One.", "", "Three."], "On  mills"))) == "One.\n\nThree."
    assert read(written(["One."], "On  mills"))[0] == "On mills"
    found = read(pdf())
    assert found[0] == "The tide mill"
    assert all(paragraph in said(found) for paragraph in PARAGRAPHS)


@READERS
def test_words_cut_at_line_ends_are_whole_again(read: Read) -> None:
    assert "A waterwheel of A-" in said(read(written(["A water-\nwheel of A-\nB."])))


def test_all_of_it_or_its_beginning() -> None:
    file = written([f"Page {number}." for number in range(1, 121)])
    assert [block.first for block in read_pdf(file)[1]] == list(range(1, 121))
    _, by_pages = read_web_pdf(file, most_pages=100, most_characters=10_000)
    assert by_pages[-1] == "Page 100."
    assert len(read_web_pdf(file, most_pages=100, most_characters=20)[1]) == 3


def left_of(pages: list[str], feet: int = 0) -> list[str]:
    """Leave running heads out of pages whose last lines, `feet`, stand at one height."""
    lines = [page.split("\n") for page in pages]
    segments = [
        [
            Segment(
                line,
                0,
                100,
                800 - 12 * at if at < len(page) - feet else 12.0 * (len(page) - at),
                10,
            )
            for at, line in enumerate(page)
        ]
        for page in lines
    ]
    kept = zip(lines, without_heads(segments), strict=True)
    return ["\n".join(page[at] for at in remaining) for page, remaining in kept]


def test_what_most_pages_begin_or_end_with_is_no_text() -> None:
    numbers = range(1, 6)
    pages = [f"The mill – Page {n}\nInvoice 4{n}1\nPaid by {'x' * n}.\n{n}" for n in numbers]
    assert left_of(["Cover", *pages], 1) == [
        "Cover", *(f"Invoice 4{n}1\nPaid by {'x' * n}." for n in numbers)
    ]  # fmt: skip
    short = [f"Page {n}" for n in numbers]
    assert left_of(short) == short
    assert left_of([f"Mill\n{page}" for page in pages[:2]], 1) == [
        "Mill\nInvoice 411\nPaid by x.", "Invoice 421\nPaid by xx."
    ]  # fmt: skip
    feet = [f"Paid by {'x' * n}.\nReport 2, page {n} of 9" for n in numbers]
    assert left_of(feet, 1) == [f"Paid by {'x' * n}." for n in numbers]
    rows = ["\n".join([f"{n} ovens", *["brick"] * n, "needs a bund"]) for n in numbers]
    assert left_of(rows)[-1].endswith("needs a bund")


@READERS
def test_encrypted(read: Read) -> None:
    writer, locked = PdfWriter(PdfReader(io.BytesIO(pdf()))), io.BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(locked)
    with pytest.raises(ContentError, match="encrypted PDF: save a copy without password"):
        read(locked.getvalue())


LINES = ["The mill was built in 1731 by a com-", "pany of weavers.", "Nobody lives there now."]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A page whose lines stand 100 points below each other, from 100 below the upper edge."""
    path = tmp_path / "mill.pdf"
    canvas = Canvas(str(path), pagesize=(600, 500))
    for at, line in enumerate(LINES, 1):
        canvas.drawString(50, 500 - 100 * at, line)
    canvas.showPage()
    canvas.drawString(50, 400, "The second page.")
    canvas.save()
    return path


def marked_rows(png: bytes) -> list[int]:
    """Return in which rows of a page 500 points high something is marked, to the hundred."""
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    rows = np.flatnonzero((pixels == (255, 232, 120)).all(axis=2).any(axis=1))
    return sorted({round(float(row) / len(pixels) * 5) * 100 for row in rows})


def test_a_quotation_is_marked_over_the_end_of_a_line_and_a_hyphen(file: Path) -> None:
    quotation = "built in 1731 by a company of\nweavers."
    png, marked = picture_of_page(file, 1, [quotation])
    assert marked_rows(png) == [100, 200]
    assert 0.15 < marked < 0.2
    assert Image.open(io.BytesIO(png)).size == (1200, 1000)


def test_a_page_that_is_turned_is_marked_where_it_is_seen(file: Path, tmp_path: Path) -> None:
    writer = PdfWriter()
    writer.add_page(PdfReader(file).pages[0]).rotate(180)
    turned = tmp_path / "turned.pdf"
    writer.write(turned)
    png, _ = picture_of_page(turned, 1, ["Nobody lives there now."])
    assert marked_rows(png) == [200]


@pytest.mark.parametrize("number", [0, 3])
def test_a_page_that_does_not_exist_is_refused(file: Path, number: int) -> None:
    with pytest.raises(ContentError, match=f"page {number} of 2 does not exist"):
        picture_of_page(file, number, [])


SCANNED = [
    "The tide mill of Merrow",
    "",
    "Edith Halloran built the mill in 1783.",
    "The sluice gate is opened two hours after high water.",
]
SIZE = (595, 842)


@cache
def picture(lines: tuple[str, ...], size: tuple[int, int] = (1240, 1754)) -> Image.Image:
    """Draw lines as a scanner sees them: dark grey on a light grey, a little askew."""
    from matplotlib.font_manager import findfont

    font = ImageFont.truetype(findfont("DejaVu Sans"), 28)
    page = Image.new("L", size, 238)
    pen = ImageDraw.Draw(page)
    for number, line in enumerate(lines):
        pen.text((150, 200 + 44 * number), line, fill=40, font=font)
    return page.rotate(0.3, fillcolor=238)


def scan(path: Path, *pages: str | Sequence[str], size: tuple[float, float] = SIZE) -> Path:
    """Write a PDF: a text is a text layer, a list the lines of a picture, which fills the page."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=size)
    for page in pages:
        if isinstance(page, str):
            canvas.drawString(72, 720, page)
        elif page:
            canvas.drawImage(ImageReader(picture(tuple(page))), 0, 0, *size)
        canvas.showPage()
    canvas.save()
    path.write_bytes(file.getvalue())
    return path


def test_pages_that_are_pictures_are_read_in_their_place_and_nothing_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)
    german = "Die Mühle wurde größer; im Café gibt es Brötchen."
    body = scan(tmp_path / "a.pdf", "A text layer.", SCANNED, [], [german])
    _, blocks = read_pdf(body.read_bytes())
    assert [(block.first, block.text) for block in blocks] == [
        (1, "A text layer."), (2, SCANNED[0]), (2, " ".join(SCANNED[2:])), (4, german)
    ]  # fmt: skip


def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    (one,) = load(scan(tmp_path / "a.pdf", SCANNED))
    assert isinstance(one, Unusable)
    command = "pip install -c constraints.txt '.[ocr]'"
    assert f"scanned? Run in a checkout of crag: {command}," in one.reason


def test_a_picture_without_text_is_told(tmp_path: Path) -> None:
    (one,) = load(scan(tmp_path / "a.pdf", [" "]))
    assert isinstance(one, Unusable)
    assert "no text in it, nor any in its pictures" in one.reason

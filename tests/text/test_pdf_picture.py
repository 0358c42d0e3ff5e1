"""Pages of PDFs as they look, with quotations marked."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from crag.errors import ContentError
from crag.text.pdf_picture import picture_of_page

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

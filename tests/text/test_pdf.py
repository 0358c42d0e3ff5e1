"""PDF, as pages of the web and as files of an index."""

import io

import pytest
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from crag.errors import ContentError
from crag.text.pdf import read_pdf
from tests.web.site import PARAGRAPHS, pdf


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


def test_title_and_pages() -> None:
    assert read_pdf(written(["One.", "", "Three."], "On  mills")) == (
        "On mills",
        ["One.", "", "Three."],
    )
    title, pages = read_pdf(pdf())
    assert title == "The tide mill"
    assert all(paragraph in pages[0] for paragraph in PARAGRAPHS)


@pytest.mark.parametrize("title", ["", "untitled", "(anonymous)", "(Unspecified)"])
def test_titles_that_are_none(title: str) -> None:
    assert read_pdf(written(["One."], title)).title == ""


def test_words_cut_at_line_ends_are_whole_again() -> None:
    assert read_pdf(written(["A water-\nwheel of A-\nB."])).pages == ["A waterwheel of A-\nB."]


def test_all_of_it_or_its_beginning() -> None:
    file = written([f"Page {number}." for number in range(1, 121)])
    assert len(read_pdf(file).pages) == 120
    assert read_pdf(file, most_pages=100).pages[-1] == "Page 100."
    assert len(read_pdf(file, most_characters=20).pages) == 3


@pytest.mark.parametrize("body", [b"", b"no PDF at all", b"%PDF-1.4 and then nothing"])
def test_damaged(body: bytes) -> None:
    with pytest.raises(ContentError, match="damaged PDF"):
        read_pdf(body)


def test_encrypted() -> None:
    writer, locked = PdfWriter(PdfReader(io.BytesIO(pdf()))), io.BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(locked)
    with pytest.raises(ContentError, match="encrypted PDF: save a copy without password"):
        read_pdf(locked.getvalue())

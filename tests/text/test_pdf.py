"""PDF, as pages of the web and as files of an index."""

import io
from collections.abc import Callable
from functools import partial

import pytest
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from crag.errors import ContentError
from crag.text.blocks import Block, text_of
from crag.text.pdf import read_pdf, read_web_pdf, running_heads
from crag.text.pdf_page import Segment
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


def without_heads(pages: list[str], feet: int = 0) -> list[str]:
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
    return [
        "\n".join(page[first : len(page) - last])
        for page, (first, last) in zip(lines, running_heads(segments), strict=True)
    ]


def test_what_most_pages_begin_or_end_with_is_no_text() -> None:
    numbers = range(1, 6)
    pages = [f"The mill – Page {n}\nInvoice 4{n}1\nPaid by {'x' * n}.\n{n}" for n in numbers]
    assert without_heads(["Cover", *pages], 1) == [
        "Cover", *(f"Invoice 4{n}1\nPaid by {'x' * n}." for n in numbers)
    ]  # fmt: skip
    short = [f"Page {n}" for n in numbers]
    assert without_heads(short) == short
    assert without_heads(pages[:2], 1) == pages[:2]
    feet = [f"Paid by {'x' * n}.\nReport 2, page {n} of 9" for n in numbers]
    assert without_heads(feet, 1) == [f"Paid by {'x' * n}." for n in numbers]
    rows = ["\n".join([f"{n} ovens", *["brick"] * n, "needs a bund"]) for n in numbers]
    assert without_heads(rows)[-1].endswith("needs a bund")


@READERS
def test_encrypted(read: Read) -> None:
    writer, locked = PdfWriter(PdfReader(io.BytesIO(pdf()))), io.BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(locked)
    with pytest.raises(ContentError, match="encrypted PDF: save a copy without password"):
        read(locked.getvalue())

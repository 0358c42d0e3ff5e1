"""PDF, as pages of the web and as files of an index."""

import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject, StreamObject
from reportlab.pdfgen.canvas import Canvas

from crag.errors import ContentError
from crag.text.pdf import PdfText, read_pdf, read_web_pdf, without_running_heads
from tests.web.site import PARAGRAPHS, pdf

read_web = partial(read_web_pdf, most_pages=1000, most_characters=1_000_000)
READERS = pytest.mark.parametrize("read", [read_pdf, read_web])
Read = Callable[[bytes], PdfText]


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
    assert read(written(["One.", "", "Three."], "On  mills")) == (
        "On mills",
        ["One.", "", "Three."],
    )
    title, pages = read(pdf())
    assert title == "The tide mill"
    assert all(paragraph in pages[0] for paragraph in PARAGRAPHS)


@READERS
@pytest.mark.parametrize("title", ["", "untitled", "(anonymous)", "(Unspecified)"])
def test_titles_that_are_none(read: Read, title: str) -> None:
    assert read(written(["One."], title)).title == ""


@READERS
def test_words_cut_at_line_ends_are_whole_again(read: Read) -> None:
    assert read(written(["A water-\nwheel of A-\nB."])).pages == ["A waterwheel of A-\nB."]


def test_bullets_of_latex_are_bullets() -> None:
    """Fonts of LaTeX, such as SFRM1000, have them at 136, and often do not tell what they are."""
    writer = PdfWriter(PdfReader(io.BytesIO(written(["~ The mill\n~ The store"]))))
    read_as, file = StreamObject(), io.BytesIO()
    read_as.set_data(
        b"1 begincodespacerange <00> <ff> endcodespacerange\n1 beginbfchar <7e> <0088> endbfchar"
    )
    for font in writer.pages[0]["/Resources"]["/Font"].values():  # type: ignore[index]
        font.get_object()[NameObject("/ToUnicode")] = writer._add_object(read_as)  # noqa: SLF001
    writer.write(file)
    assert read_pdf(file.getvalue()).pages == ["• The mill\n• The store"]


def test_all_of_it_or_its_beginning() -> None:
    file = written([f"Page {number}." for number in range(1, 121)])
    assert len(read_pdf(file).pages) == 120
    by_pages = read_web_pdf(file, most_pages=100, most_characters=10_000)
    assert by_pages.pages[-1] == "Page 100."
    assert len(read_web_pdf(file, most_pages=100, most_characters=20).pages) == 3


def test_threads_read_files_one_after_the_other() -> None:
    files = [written([f"File {number}."] * 20) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read_pdf, files * 4))
    assert [one.pages[-1] for one in found] == [f"File {number}." for number in range(8)] * 4


def test_what_most_pages_begin_or_end_with_is_no_text() -> None:
    numbers = range(1, 6)
    pages = [f"The mill – Page {n}\nInvoice 41{n}\nPaid by {'x' * n}.\n{n}" for n in numbers]
    assert without_running_heads(["Cover", *pages]) == [
        "Cover", *(f"Invoice 41{n}\nPaid by {'x' * n}." for n in numbers)
    ]  # fmt: skip
    short = [f"Page {n}" for n in numbers]
    assert without_running_heads(short) == short
    assert without_running_heads(pages[:2]) == pages[:2]
    feet = [f"Paid by {'x' * n}.\nReport 2, page {n} of 9" for n in numbers]
    assert without_running_heads(feet) == [f"Paid by {'x' * n}." for n in numbers]


def test_book_and_chapter_by_turns_are_no_text() -> None:
    chapters = ["Mills"] * 4 + ["Ovens"] * 4
    heads = [
        f"{at + 9} On Engines" if at % 2 else f"Chapter {1 + at // 4}: {chapter} {at + 9}"
        for at, chapter in enumerate(chapters)
    ]
    texts = [f"It has {'x' * at} parts.\nFigure {at}{at}" for at in range(8)]
    pages = [f"{head}\n{text}" for head, text in zip(heads, texts, strict=True)]
    assert without_running_heads(pages) == texts
    slides = [f"{at} Part {'x' * at}\nIt is {'y' * at}." for at in range(1, 9)]
    assert without_running_heads(slides) == slides


def test_words_that_are_only_set_apart_stay_apart() -> None:
    """LaTeX writes no spaces, but moves on; columns and cells stand at their places."""
    file = io.BytesIO()
    canvas = Canvas(file, invariant=True)
    for x, y, words in [
        (72, 720, ["Each", "word", "stands", "alone."]),
        (72, 700, ["Left", "column."]),
        (72, 680, ["goes", "on."]),
        (320, 700, ["Right", "column."]),
    ]:
        for word in words:
            canvas.drawString(x, y, word)
            x += canvas.stringWidth(word) + 3  # noqa: PLW2901
    canvas.save()
    assert read_pdf(file.getvalue()).pages == [
        "Each word stands alone.\nLeft column.\ngoes on.\nRight column."
    ]


@READERS
@pytest.mark.parametrize("body", [b"", b"no PDF at all", b"%PDF-1.4 and then nothing"])
def test_damaged(read: Read, body: bytes) -> None:
    with pytest.raises(ContentError, match="damaged PDF"):
        read(body)


@READERS
def test_encrypted(read: Read) -> None:
    writer, locked = PdfWriter(PdfReader(io.BytesIO(pdf()))), io.BytesIO()
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(locked)
    with pytest.raises(ContentError, match="encrypted PDF: save a copy without password"):
        read(locked.getvalue())

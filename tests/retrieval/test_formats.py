"""Notebooks, books, mail, office files and source code: what is read of them, and where it is."""

import json
import zipfile
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import docx
import pytest
from pptx import Presentation
from pptx.enum.shapes import MSO_CONNECTOR
from xlsxwriter import Workbook

from crag.retrieval.documents import SourceText, Unusable
from crag.retrieval.loaders import load
from crag.retrieval.splitting import split


def only(path: Path) -> SourceText:
    (loaded,) = load(path)
    assert isinstance(loaded, SourceText), loaded
    return loaded


def refusal(path: Path) -> str:
    (loaded,) = load(path)
    assert isinstance(loaded, Unusable)
    return loaded.reason


def write_notebook(path: Path, cells: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    return path


def test_notebook_with_megabytes_of_output(folder: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Engines\n", "\n", "How they run."]},
        {
            "cell_type": "code",
            "source": "run()",
            "outputs": [{"output_type": "stream", "text": ["x" * 3_000_000]}],
        },
    ]
    loaded = only(write_notebook(folder / "a.ipynb", cells))
    assert loaded.title == "Engines"
    assert loaded.text == "# Engines\n\nHow they run.\n\n```python\nrun()\n```"
    (chunk,) = split(loaded, "/")
    assert chunk.metadata["position"] == "cell 1"


def test_a_notebook_of_an_old_version(folder: Path) -> None:
    """Its cells are in worksheets, its headings are cells, and code is an `input`."""
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Mills"]},
        {"cell_type": "code", "input": "grind()", "outputs": []},
        {"cell_type": "code", "input": "", "outputs": []},
        {"cell_type": "raw", "source": "As it stands."},
    ]
    (folder / "a.ipynb").write_text(json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}))
    loaded = only(folder / "a.ipynb")
    assert loaded.text == "## Mills\n\n```python\ngrind()\n```\n\n\n\nAs it stands."


def test_what_is_no_notebook_is_told(folder: Path) -> None:
    (folder / "a.ipynb").write_text('{"cells": [{}]}')
    assert "not a Jupyter notebook" in refusal(folder / "a.ipynb")


def write_epub(path: Path, *, protected: bool = False) -> Path:
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>On Engines</dc:title></metadata>'
        '<manifest><item id="two" href="text/two%20.xhtml"/><item id="one" href="one.xhtml"/>'
        '</manifest><spine><itemref idref="one"/><itemref idref="two"/></spine></package>'
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OPS/book.opf"/></rootfiles></container>',
        )
        archive.writestr("OPS/book.opf", package)
        archive.writestr("OPS/one.xhtml", "<h1>The mill</h1><p>It grinds.</p>")
        archive.writestr("OPS/text/two .xhtml", "<h1>The store</h1><p>It keeps.</p>")
        if protected:
            archive.writestr("META-INF/rights.xml", "<rights/>")
    return path


def test_epub(folder: Path) -> None:
    loaded = only(write_epub(folder / "a.epub"))
    assert loaded.title == "On Engines"
    assert loaded.text == "# The mill\n\nIt grinds.\n\n# The store\n\nIt keeps."
    assert list(loaded.pages) == [0, 24]


def test_a_protected_or_damaged_epub_is_told(folder: Path) -> None:
    assert "protected against copying" in refusal(write_epub(folder / "a.epub", protected=True))
    (folder / "b.epub").write_bytes((folder / "a.epub").read_bytes()[:200])
    assert "not an EPUB file, or damaged" in refusal(folder / "b.epub")


@pytest.mark.parametrize("subtype", ["plain", "html"])
def test_mail(folder: Path, subtype: str) -> None:
    message = EmailMessage()
    message["Subject"], message["From"] = "The mill", "ada@example.org"
    text = "It grinds again, dès demain."
    message.set_content(f"<p>{text}</p>" if subtype == "html" else text, subtype=subtype)
    message.add_attachment(b"\0\1", maintype="application", subtype="zip", filename="a.zip")
    (folder / "a.eml").write_bytes(bytes(message))
    loaded = only(folder / "a.eml")
    assert loaded.title == "The mill"
    assert loaded.text == f"From: ada@example.org\n\n{text}"


def test_a_mail_of_attachments_alone_has_its_head(folder: Path) -> None:
    message = EmailMessage()
    message["Subject"], message["To"] = "The plan", "ada@example.org"
    message.add_attachment(b"\0\1", maintype="application", subtype="zip", filename="a.zip")
    (folder / "a.eml").write_bytes(bytes(message))
    assert only(folder / "a.eml").text == "To: ada@example.org"


@pytest.mark.parametrize(
    "head",
    [
        b'From: "\r\nTo: >\n\nIt grinds.',
        b"To: From: ; charset=--a--aTo: *0*From: \n\nIt grinds.",
    ],
)
def test_a_mail_whose_head_cannot_be_parsed_is_told(folder: Path, head: bytes) -> None:
    (folder / "a.eml").write_bytes(head)
    assert "not a mail message, or damaged" in refusal(folder / "a.eml")


def test_presentation(folder: Path) -> None:
    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "The mill"
    first.placeholders[1].text = "It grinds.\nIt waits."
    first.notes_slide.notes_text_frame.text = "Say why."
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Secret"
    hidden.element.set("show", "0")
    last = deck.slides.add_slide(deck.slide_layouts[6])
    table = last.shapes.add_table(2, 2, 0, 0, 9, 9).table
    for cell, text in zip(table.iter_cells(), ["part", "kg", "mill", "7"], strict=True):
        cell.text = text
    deck.save(str(folder / "a.pptx"))
    loaded = only(folder / "a.pptx")
    assert loaded.text.split("\n\n") == [
        "## The mill", "- It grinds.\n- It waits.", "Say why.", "",
        "| part | kg |\n| --- | --- |\n| mill | 7 |",
    ]  # fmt: skip
    assert len(loaded.pages) == 3


def test_grouped_shapes_and_lines_of_a_slide(folder: Path) -> None:
    deck = Presentation()
    shapes = deck.slides.add_slide(deck.slide_layouts[6]).shapes
    shapes.add_connector(MSO_CONNECTOR.STRAIGHT, 0, 0, 9, 9)
    group = shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "The wheel"
    inner = group.shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "its axle"
    deck.save(str(folder / "a.pptx"))
    assert only(folder / "a.pptx").text == "The wheel\n\nits axle"


def test_workbook(folder: Path) -> None:
    with Workbook(folder / "a.xlsx") as workbook:
        sheet = workbook.add_worksheet("Parts")
        for number, row in enumerate([("part", "kg"), ("mill", 7), (), ("store", 0.5)]):
            sheet.write_row(number, 0, row)
        workbook.add_worksheet("People").write_row(0, 0, ["Ada"])
    loaded = only(folder / "a.xlsx")
    assert loaded.text == (
        "## Parts\n\n| part | kg |\n| --- | --- |\n| mill | 7 |\n| store | 0.5 |\n\n"
        "## People\n\n| Ada |"
    )
    chunks = split(loaded, "/")
    assert [chunk.metadata["position"] for chunk in chunks] == ["sheet 1"]


@pytest.mark.parametrize("suffix", [".pptx", ".xlsx", ".docx"])
def test_a_broken_office_file_is_told(folder: Path, suffix: str) -> None:
    (folder / f"a{suffix}").write_bytes(b"PK\3\4 broken")
    assert "damaged, or encrypted" in refusal(folder / f"a{suffix}")


def test_headings_lists_and_tables_of_a_word_document(folder: Path) -> None:
    document = docx.Document()
    document.add_heading("Parts", 2)
    document.add_paragraph("mill", style="List Bullet")
    document.add_paragraph("store", style="List Bullet")
    table = document.add_table(2, 2)
    for cell, text in zip(table._cells, ["part", "kg", "mill", "7"], strict=True):  # noqa: SLF001
        cell.text = text
    document.save(str(folder / "a.docx"))
    assert only(folder / "a.docx").text.split("\n\n") == [
        "## Parts",
        "- mill\n- store",
        "| part | kg |\n| --- | --- |\n| mill | 7 |",
    ]


def test_a_word_document_that_begins_with_its_title_and_ends_with_a_list(folder: Path) -> None:
    document = docx.Document()
    document.add_heading("On Mills", 0)
    document.add_paragraph("mill", style="List Number")
    document.add_paragraph("store", style="List Number")
    document.save(str(folder / "a.docx"))
    assert only(folder / "a.docx").text == "# On Mills\n\n- mill\n- store"


def test_source_code_is_code(folder: Path) -> None:
    (folder / "mill.py").write_text('"""The mill."""\n\n\ndef grind():\n    return 1\n')
    (chunk,) = split(only(folder / "mill.py"), "/")
    assert (chunk.metadata["title"], chunk.metadata["kind"]) == ("mill.py", "code")
    assert chunk.metadata["lines"] == "1 3-5"

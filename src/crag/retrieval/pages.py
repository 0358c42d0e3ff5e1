"""Loaders of whole-page formats: text, Markdown, HTML, PDF, DOCX."""

import zipfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from crag.errors import SourceError
from crag.retrieval.blocks import blocks_of, title_of
from crag.retrieval.documents import SourceText
from crag.retrieval.markdown import readable_markdown
from crag.retrieval.restructured import readable_rst
from crag.retrieval.texts import read_bytes, read_text, reading
from crag.text.encodings import decoded
from crag.text.html import read_whole_html
from crag.text.pdf import read_pdf

if TYPE_CHECKING:
    from docx.document import Document

_PAGE_BREAK = "\n\n"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
"""What older programs show in place of the element before it, such as the same text box again."""


def load_text(path: Path) -> Iterator[SourceText]:
    """Load plain text; its title is the file's name without the suffix."""
    yield SourceText(source=str(path), title=path.stem, text=read_text(path), unit="line")


def load_markdown(path: Path) -> Iterator[SourceText]:
    """Load Markdown; its title is that of the front matter, else the first ``# `` heading."""
    named, text = readable_markdown(read_text(path))
    title = named or title_of(blocks_of(text, "markdown")) or path.stem
    yield SourceText(source=str(path), title=title, text=text, unit="line", markup="markdown")


def load_rst(path: Path) -> Iterator[SourceText]:
    """Load reStructuredText, with Sphinx's directives and roles; its title is the first heading."""
    text = readable_rst(read_text(path))
    title = title_of(blocks_of(text, "rst")) or path.stem
    yield SourceText(source=str(path), title=title, text=text, unit="line", markup="rst")


def load_html(path: Path) -> Iterator[SourceText]:
    """Load the visible text of a web page, with its headings as Markdown headings.

    The URL is that of ``<link rel="canonical">``, if there is one.
    """
    page = read_whole_html(decoded(read_bytes(path), "text/html"))
    yield SourceText(
        source=str(path),
        title=page.title or path.stem,
        text=page.text,
        url=page.url,
        unit="paragraph",
        markup="markdown",
    )


def load_pdf(path: Path) -> Iterator[SourceText]:
    """Load the text layer of a PDF.

    Raises:
        SourceError: it has no text layer.
        ContentError: it is damaged or encrypted.
    """
    title, pages = read_pdf(read_bytes(path))
    if not any(pages):
        raise SourceError(str(path), "no text in it: scanned? Recognise its text (OCR) first")
    starts = list(accumulate((len(page) + len(_PAGE_BREAK) for page in pages), initial=0))[:-1]
    yield SourceText(
        source=str(path),
        title=title or path.stem,
        text=_PAGE_BREAK.join(pages),
        unit="page",
        pages=starts,
    )


def load_docx(path: Path) -> Iterator[SourceText]:
    """Load the paragraphs of a Word document, those of tables too; hidden text is left out.

    Raises:
        SourceError: it is damaged or encrypted.
    """
    from docx import Document
    from docx.opc.exceptions import OpcError
    from lxml.etree import LxmlError

    try:
        with reading(path), path.open("rb") as file:
            document = Document(file)
        title = document.core_properties.title.strip()
        text = "\n\n".join(_docx_paragraphs(document))
    except (zipfile.BadZipFile, OpcError, LxmlError, KeyError, ValueError, EOFError) as error:
        raise SourceError(str(path), "not a DOCX file, damaged, or encrypted") from error
    yield SourceText(source=str(path), title=title or path.stem, text=text, unit="paragraph")


def _docx_paragraphs(document: "Document") -> Iterator[str]:
    """Yield what paragraphs say, also those of tables, text boxes and content controls."""
    from docx.oxml.ns import qn
    from docx.text.run import Run

    pieces: dict[object, list[str]] = {}
    for element in document.element.body.iter(qn("w:r")):
        run, around = Run(element, document), list(element.iterancestors())
        hidden = run.font.hidden or (element.style is not None and run.style.font.hidden)
        if not hidden and not any(one.tag in {qn("w:moveFrom"), _FALLBACK} for one in around):
            paragraph = next(one for one in around if one.tag == qn("w:p"))
            pieces.setdefault(paragraph, []).append(run.text)
    paragraphs = ("".join(texts).strip() for texts in pieces.values())
    yield from filter(None, paragraphs)

"""Loaders of whole-page formats: text, code, Markdown, reStructuredText, HTML, PDF."""

from collections.abc import Iterator
from pathlib import Path

from crag.documents.blocks import blocks_of, title_of
from crag.documents.markdown import readable_markdown
from crag.documents.restructured import readable_rst
from crag.documents.sources import SourceText, joined, of_file
from crag.documents.texts import read_bytes, read_text
from crag.errors import SourceError
from crag.extras import how_to_install
from crag.text.encodings import decoded
from crag.text.html import read_whole_html
from crag.text.ocr import has_ocr
from crag.text.paragraphs import with_paragraphs_apart
from crag.text.pdf import read_pdf, without_running_heads

_SCANNED = f"no text in it: scanned? {how_to_install('ocr')}, or recognise its text first"


def load_text(path: Path) -> Iterator[SourceText]:
    """Load plain text; its title is the file's name without the suffix."""
    yield of_file(path, "", read_text(path), "line")


def load_code(path: Path) -> Iterator[SourceText]:
    """Load the source of a program; its title is the file's name."""
    yield of_file(path, path.name, read_text(path), "line", markup="code")


def load_markdown(path: Path) -> Iterator[SourceText]:
    """Load Markdown; its title is that of the front matter, else the first ``# `` heading."""
    named, text = readable_markdown(read_text(path))
    title = named or title_of(blocks_of(text, "markdown"))
    yield of_file(path, title, text, "line", markup="markdown")


def load_rst(path: Path) -> Iterator[SourceText]:
    """Load reStructuredText, with Sphinx's directives and roles; its title is the first heading."""
    text = readable_rst(read_text(path))
    title = title_of(blocks_of(text, "rst"))
    yield of_file(path, title, text, "line", markup="rst")


def load_html(path: Path) -> Iterator[SourceText]:
    """Load the visible text of a web page, with its headings as Markdown headings.

    The URL is that of ``<link rel="canonical">``, if there is one.
    """
    page = read_whole_html(decoded(read_bytes(path), "text/html"))
    yield of_file(path, page.title, page.text, "paragraph", url=page.url, markup="markdown")


def load_pdf(path: Path) -> Iterator[SourceText]:
    """Load the text layer of a PDF, and the text of scanned pages where the extra `ocr` is there.

    Raises:
        SourceError: it has no text.
        ContentError: it is damaged or encrypted.
    """
    title, pages = read_pdf(read_bytes(path))
    if not any(pages):
        raise SourceError(
            str(path), "no text in it, nor any in its pictures" if has_ocr() else _SCANNED
        )
    pages = list(map(with_paragraphs_apart, without_running_heads(pages)))
    yield joined(path, title, pages, "page")

"""Loaders of whole-page formats: text, Markdown, HTML, PDF, DOCX."""

import logging
import re
import zipfile
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from crag.errors import SourceError
from crag.retrieval.documents import SourceText
from crag.retrieval.markdown import headings, title_of
from crag.retrieval.texts import check_readable, decode, read_bytes, read_text, reason_of

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from langchain_core.documents import Document

_logger = logging.getLogger(__name__)

_UNSEEN = ["script", "style", "noscript", "template", "nav", "svg", "form"]
_BLOCKS = re.compile(
    r"address|article|aside|blockquote|body|d[dlt]|details|div|fig(caption|ure)|footer|h[1-6r]|"
    r"header|li|main|ol|p|pre|section|summary|t(able|body|foot|head|r)|ul"
)
_PAGE_BREAK = "\n\n"


def load_text(path: Path) -> Iterator[SourceText]:
    """Load plain text; its title is the file's name without the suffix."""
    yield SourceText(source=str(path), title=path.stem, text=read_text(path), unit="line")


def load_markdown(path: Path) -> Iterator[SourceText]:
    """Load Markdown as it is written; its title is the first ``# `` heading."""
    text = read_text(path)
    title = title_of(headings(text)) or path.stem
    yield SourceText(source=str(path), title=title, text=text, unit="line", markdown=True)


def load_html(path: Path) -> Iterator[SourceText]:
    """Load the visible text of a web page, with its headings as Markdown headings.

    The URL is that of ``<link rel="canonical">``, if there is one.
    """
    from bs4 import BeautifulSoup

    data = read_bytes(path)
    decode(data, path)  # Refuses binary content; the parser honours the declared encoding.
    soup = BeautifulSoup(data, "lxml")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    link = soup.find("link", rel="canonical", href=re.compile("^https?://"))
    url = str(link["href"]) if link else ""
    text = _visible_text(soup)
    yield SourceText(
        source=str(path),
        title=title or path.stem,
        text=text,
        url=url,
        unit="paragraph",
        markdown=True,
    )


def load_pdf(path: Path) -> Iterator[SourceText]:
    """Load the text layer of a PDF.

    Raises:
        SourceError: it is damaged or encrypted, or has no text layer.
    """
    check_readable(path)
    pages = _pdf_pages(path)
    texts = [page.page_content.strip() for page in pages]
    if not any(texts):
        raise SourceError(str(path), "no text in it: scanned? Recognise its text (OCR) first")
    starts = list(accumulate((len(text) + len(_PAGE_BREAK) for text in texts), initial=0))[:-1]
    title = str(pages[0].metadata.get("title") or "").strip()
    if title in {"untitled", "(anonymous)"}:
        title = ""
    yield SourceText(
        source=str(path),
        title=title or path.stem,
        text=_PAGE_BREAK.join(texts),
        unit="page",
        pages=starts,
    )


def load_docx(path: Path) -> Iterator[SourceText]:
    """Load the paragraphs of a Word document.

    Raises:
        SourceError: it is damaged or encrypted.
    """
    from langchain_community.document_loaders import Docx2txtLoader

    check_readable(path)
    try:
        text = Docx2txtLoader(path).load()[0].page_content
        title = _docx_title(path)
    except (zipfile.BadZipFile, KeyError, ParseError, ValueError, EOFError, OSError) as error:
        raise SourceError(str(path), "not a DOCX file, damaged, or encrypted") from error
    paragraphs = re.sub(r"[ \t]*\n[ \t]*(\n[ \t]*)+", "\n\n", text.strip())
    yield SourceText(source=str(path), title=title or path.stem, text=paragraphs, unit="paragraph")


def _pdf_pages(path: Path) -> "list[Document]":
    from langchain_community.document_loaders import PyPDFLoader
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    try:
        return PyPDFLoader(path).load()
    except (FileNotDecryptedError, DependencyError) as error:
        raise SourceError(str(path), "encrypted: save a copy without password") from error
    except OSError as error:
        raise SourceError(str(path), reason_of(error)) from error
    except (
        PyPdfError,
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        NotImplementedError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:  # What pypdf's parser raises on damaged files.
        _logger.debug("cannot parse %s", path, exc_info=True)
        raise SourceError(str(path), f"damaged PDF: {error}") from error


def _docx_title(path: Path) -> str:
    from bs4 import BeautifulSoup

    with zipfile.ZipFile(path) as archive:
        if "docProps/core.xml" not in archive.namelist():
            return ""
        title = BeautifulSoup(archive.read("docProps/core.xml"), "xml").find("title")
        return title.get_text().strip() if title else ""


def _visible_text(soup: "BeautifulSoup") -> str:
    for tag in soup.find_all([*_UNSEEN, "title"]):
        tag.decompose()
    for tag in soup.find_all("br"):
        tag.replace_with("\n")
    for tag in soup.find_all(lambda tag: bool(_BLOCKS.fullmatch(tag.name))):
        _set_apart(tag)
    for tag in soup.find_all(["td", "th"]):
        tag.append(" ")
    paragraphs = re.split(r"\n[ \t]*\n", soup.get_text())
    texts = (" ".join(paragraph.split()) for paragraph in paragraphs)
    return "\n\n".join(text for text in texts if text)


def _set_apart(tag: "Tag") -> None:
    level = tag.name[1:] if re.fullmatch("h[1-6]", tag.name) else ""
    tag.insert(0, "\n\n" + ("#" * int(level) + " " if level else ""))
    tag.append("\n\n")

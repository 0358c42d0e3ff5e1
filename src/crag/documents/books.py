"""Loaders of notebooks, electronic books and mail."""

import json
import posixpath
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from crag.documents.blocks import Block, blocks_of, title_of
from crag.documents.markdown import readable_markdown
from crag.documents.sources import BREAK, HARD_BREAK, SourceText, joined, of_file
from crag.documents.texts import check_archive, read_bytes, reading
from crag.errors import SourceError
from crag.text.encodings import decoded
from crag.text.html import read_whole_html

_NAMESPACE = re.compile(r"\{[^}]*\}")
_SHOWN = ("From", "To", "Cc", "Date")
_CHAPTER = re.compile(
    r"(?P<word>(?:chapter|chapitre|kapitel|cap[ií]tulo|capitolo)\s+)?"
    r"(?:(?P<number>\d{1,3})(?![.\d]*\d)|(?(word)\w|(?!)))",
    re.IGNORECASE,
)
"""How the heading of a chapter begins that has its number, unlike "5.1." of a section."""


def load_notebook(path: Path) -> Iterator[SourceText]:
    """Load the text and code of a Jupyter notebook, without what its cells have put out.

    Raises:
        SourceError: it is not a notebook.
    """
    body = decoded(read_bytes(path), "text/plain")
    try:
        notebook = json.loads(body)
        sheets = notebook.get("worksheets") or [notebook]
        language = (notebook.get("metadata") or {}).get("kernelspec", {}).get("language", "python")
        cells = [_cell(cell, language) for sheet in sheets for cell in sheet["cells"]]
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise SourceError(str(path), f"not a Jupyter notebook, or damaged ({error})") from error
    title = title_of(blocks_of(BREAK.join(cells), "markdown"))
    yield joined(path, title, cells, "cell", markup="markdown")


def load_epub(path: Path) -> Iterator[SourceText]:
    """Load the chapters of an EPUB in their order, each as a page of HTML is loaded.

    Raises:
        SourceError: it is damaged, or protected against copying.
    """
    from lxml.etree import LxmlError

    try:
        check_archive(path)
        with reading(path), zipfile.ZipFile(path) as archive:
            if "META-INF/rights.xml" in archive.namelist():
                raise SourceError(str(path), "protected against copying (DRM)")
            title, chapters = _book(archive)
    except (zipfile.BadZipFile, LxmlError, AttributeError, LookupError, ValueError) as error:
        raise SourceError(str(path), "not an EPUB file, or damaged") from error
    book = joined(path, title, chapters, "chapter", markup="markdown")
    headings = [block for block in blocks_of(book.text, "markdown") if block.level]
    yield replace(book, pages=_chapter_starts(headings, title) or book.pages)


def load_mail(path: Path) -> Iterator[SourceText]:
    """Load a message: sender, receivers, date and text; attachments are left out."""
    message = message_from_bytes(read_bytes(path), policy=policy.default)
    try:
        text = _body(message)
        head = [f"{name}: {message[name]}" for name in _SHOWN if message[name]]
        title = " ".join(str(message["Subject"] or "").split())
    except (AttributeError, LookupError, ValueError) as error:
        raise SourceError(str(path), f"not a mail message, or damaged ({error})") from error
    text = BREAK.join(filter(None, [HARD_BREAK.join(head), text]))
    yield of_file(path, title, text, "paragraph")


def _cell(cell: Mapping[str, Any], language: str) -> str:
    source = cell.get("source", cell.get("input", ""))
    text = (source if isinstance(source, str) else "".join(source)).strip("\n")
    match cell["cell_type"]:
        case "markdown":
            return readable_markdown(text)[1].strip()
        case "heading":  # Of notebooks before version 4.
            return "#" * int(cell.get("level", 1)) + f" {text}"
        case "code" if text:
            ticks = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
            return f"{ticks}{language}\n{text}\n{ticks}"
        case _:
            return text


def _book(archive: zipfile.ZipFile) -> tuple[str, list[str]]:
    package = next(
        element.get("full-path", "")
        for element in _xml(archive.read("META-INF/container.xml"))
        if element.tag == "rootfile"
    )
    elements = _xml(archive.read(package))
    title = next((one.text or "" for one in elements if one.tag == "title"), "")
    files = {one.get("id"): one.get("href", "") for one in elements if one.tag == "item"}
    spine = [files[one.get("idref")] for one in elements if one.tag == "itemref"]
    folder = posixpath.dirname(package)
    paths = (posixpath.normpath(posixpath.join(folder, unquote(one))) for one in spine)
    pages = map(archive.read, dict.fromkeys(paths))  # No chapter may be in it twice.
    return " ".join(title.split()), [
        read_whole_html(decoded(one, "text/html")).text for one in pages
    ]


def _chapter_starts(headings: Sequence[Block], title: str) -> list[int]:
    """Return where the chapters of a book begin: a file can hold several, or a part of one.

    They are counted as their headings do, if these have numbers. What stands before the first one
    belongs to it, and what follows the last one is counted on. Without headings it is empty.
    """
    marked = [(one, _CHAPTER.match(one.title)) for one in headings if one.title != title]
    named = Counter(heading.level for heading, mark in marked if mark and mark["word"])
    level = _shallowest(named) or _shallowest(Counter(heading.level for heading, _ in marked))
    starts, others = list[int](), list[int]()
    begins_again = False
    for heading, mark in marked:
        if heading.level != level:
            continue
        number = int(mark["number"] or len(starts) + 1) if mark else 0
        begins_again |= bool(starts) and number == 1  # As appendices do.
        if number == len(starts) + 1 and not begins_again:
            starts.append(heading.start)
            others.clear()
        else:
            others.append(heading.start)
    starts += others
    return [0, *starts[1:]] if starts else []


def _shallowest(levels: Counter[int]) -> int:
    """Return the first level that has two headings, or 0."""
    return min((level for level, count in levels.items() if count > 1), default=0)


def _xml(body: bytes) -> list[Any]:
    """Return the elements of a document, their tags without namespaces."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    elements = [one for one in etree.fromstring(body, parser).iter() if isinstance(one.tag, str)]
    for element in elements:
        element.tag = _NAMESPACE.sub("", element.tag)
    return elements


def _body(message: EmailMessage) -> str:
    part = message.get_body(("plain", "html"))
    if part is None:
        return ""
    payload = part.get_payload(decode=True)
    body = payload if isinstance(payload, bytes) else b""
    kind = part.get_content_type()
    text = decoded(body, f"{kind}; charset={part.get_content_charset() or ''}")
    text = text.replace("\r\n", "\n")
    return read_whole_html(text).text if kind == "text/html" else text.strip()

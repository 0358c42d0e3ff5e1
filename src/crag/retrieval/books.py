"""Loaders of notebooks, electronic books and mail."""

import json
import posixpath
import re
import zipfile
from collections.abc import Iterator, Mapping
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from crag.errors import SourceError
from crag.retrieval.blocks import blocks_of, title_of
from crag.retrieval.documents import BREAK, SourceText, joined
from crag.retrieval.markdown import readable_markdown
from crag.retrieval.texts import check_archive, read_bytes, reading
from crag.text.encodings import decoded
from crag.text.html import read_whole_html

_NAMESPACE = re.compile(r"\{[^}]*\}")
_SHOWN = ("From", "To", "Cc", "Date")


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
    title = title_of(blocks_of(BREAK.join(cells), "markdown")) or path.stem
    yield joined(cells, source=str(path), title=title, unit="cell", markup="markdown")


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
    title = title or path.stem
    yield joined(chapters, source=str(path), title=title, unit="chapter", markup="markdown")


def load_mail(path: Path) -> Iterator[SourceText]:
    """Load a message: sender, receivers, date and text; attachments are left out."""
    message = message_from_bytes(read_bytes(path), policy=policy.default)
    try:
        text = _body(message)
        head = [f"{name}: {message[name]}" for name in _SHOWN if message[name]]
        title = " ".join(str(message["Subject"] or "").split())
    except (AttributeError, LookupError, ValueError) as error:
        raise SourceError(str(path), f"not a mail message, or damaged ({error})") from error
    text = BREAK.join(filter(None, ["\n".join(head), text]))
    yield SourceText(source=str(path), title=title or path.stem, text=text, unit="paragraph")


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

"""Loaders of notebooks and electronic books."""

import json
import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from crag.documents.markdown import read_markdown
from crag.documents.sources import SourceText, in_units
from crag.documents.texts import check_archive, read_bytes, reading, xml_of
from crag.errors import SourceError
from crag.text.blocks import Block
from crag.text.encodings import decoded
from crag.text.html import read_page

_OF_BOOK = {"title": "title", "creator": "author", "publisher": "publisher", "date": "date"}


def load_notebook(path: Path) -> Iterator[SourceText]:
    """Load text and code of a Jupyter notebook of version 4, without what its cells have put out.

    Raises:
        SourceError: it is not a notebook.
    """
    body = decoded(read_bytes(path), "text/plain")
    try:
        notebook = json.loads(body)
        language = (notebook.get("metadata") or {}).get("kernelspec", {}).get("language", "python")
        cells = [_cell(cell, language) for cell in notebook["cells"]]
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise SourceError(str(path), f"not a Jupyter notebook, or damaged ({error})") from error
    yield in_units(path, "", cells, "cell")


def load_epub(path: Path) -> Iterator[SourceText]:
    """Load the parts of an EPUB in their order, most of them chapters, each as a page of HTML.

    Raises:
        SourceError: it is damaged, or protected against copying.
    """
    from lxml.etree import LxmlError

    try:
        check_archive(path)
        with reading(path), zipfile.ZipFile(path) as archive:
            if "META-INF/rights.xml" in archive.namelist():
                raise SourceError(str(path), "protected against copying (DRM)")
            title, said, files = _book(archive)
    except (zipfile.BadZipFile, LxmlError, AttributeError, LookupError, ValueError) as error:
        raise SourceError(str(path), "not an EPUB file, or damaged") from error
    yield in_units(path, title, files, "part", fields=said)


def _cell(cell: Mapping[str, Any], language: str) -> list[Block]:
    source = cell.get("source", "")
    text = (source if isinstance(source, str) else "".join(source)).strip("\n")
    if cell["cell_type"] != "code":
        return read_markdown(text).blocks
    return [Block("code", 1, 1, text, info=language)] if text.strip() else []


def _book(archive: zipfile.ZipFile) -> tuple[str, dict[str, str], list[list[Block]]]:
    (container, *_) = xml_of(archive, "META-INF/container.xml").iter("{*}rootfile")
    package = container.get("full-path", "")
    book = xml_of(archive, package)
    said = {name: " ".join((book.findtext(f".//{{*}}{name}") or "").split()) for name in _OF_BOOK}
    files = {one.get("id"): one.get("href", "") for one in book.iter("{*}item")}
    spine = [files[one.get("idref")] for one in book.iter("{*}itemref")]
    folder = posixpath.dirname(package)
    paths = (posixpath.normpath(posixpath.join(folder, unquote(one))) for one in spine)
    pages = map(archive.read, dict.fromkeys(paths))  # No chapter may be in it twice.
    held = [[*read_page(decoded(one, "text/html")).blocks] for one in pages]
    title = said.pop("title")
    return title, {_OF_BOOK[name]: text for name, text in said.items() if text}, held

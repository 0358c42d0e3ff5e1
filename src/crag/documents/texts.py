"""Files to text."""

import zipfile
from pathlib import Path
from typing import Any

from crag.errors import SourceError
from crag.text.encodings import decoded

_MOST_UNPACKED = 400_000_000
"""Bytes of all parts of an archive."""


def check_archive(path: Path) -> None:
    """Check that a file that is a ZIP archive inside (DOCX, XLSX, …) can be held in memory.

    Raises:
        SourceError: what it unpacks to is too large.
        zipfile.BadZipFile: it is no archive, or damaged.
    """
    with zipfile.ZipFile(path) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > _MOST_UNPACKED:
        problem = f"it unpacks to {size:,} bytes, more than {_MOST_UNPACKED:,}: split it"
        raise SourceError(str(path), problem)


def xml_of(archive: zipfile.ZipFile, name: str) -> Any:
    """Return the root of a part of an archive; entities and the network are not asked.

    Raises:
        KeyError: there is no such part.
        LxmlError: it is damaged.
    """
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - compiled

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    return etree.fromstring(archive.read(name), parser)


def attribute(element: Any, name: str) -> str:
    """Return an attribute of an element whatever its namespace; an empty text without one."""
    found = (key for key in element.attrib if key.rpartition("}")[2] == name)
    return next((str(element.attrib[key]) for key in found), "")


def read_text(path: Path) -> str:
    """Read a text file with line feeds as its only line ends.

    Raises:
        ContentError: it looks binary.
    """
    text = decoded(path.read_bytes(), "text/plain")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def reason_of(error: OSError) -> str:
    """Say what the operating system said, without the path."""
    return f"cannot be read: {error.strerror or error}"

"""Files to text."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crag.errors import SourceError
from crag.text.encodings import decoded

MOST_BYTES = 100_000_000
"""Larger files are not read."""
_MOST_UNPACKED = 1_000_000_000
_LARGEST_TREES = 40_000_000
"""Bytes of all parts that are read as a whole: as a tree each takes some thirty times as much."""
_TREES = (".xml", ".rels")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what the operating system refuses within the block into a `SourceError`."""
    try:
        yield
    except OSError as error:
        raise SourceError(str(path), reason_of(error)) from error


def read_bytes(path: Path) -> bytes:
    """Read a file.

    Raises:
        SourceError: it is too large, or the operating system refuses.
    """
    check_size(path)
    with reading(path):
        return path.read_bytes()


def check_size(path: Path) -> None:
    """Check that a file can be read as a whole.

    Raises:
        SourceError: it is too large, or the operating system refuses.
    """
    with reading(path):
        size = path.stat().st_size
    if size > MOST_BYTES:
        problem = f"{size:,} bytes are more than {MOST_BYTES:,}: split it into smaller files"
        raise SourceError(str(path), problem)


def check_archive(path: Path, *, trees: bool = True) -> None:
    """Check that a file that is a ZIP archive inside (DOCX, XLSX, …) can be held in memory.

    Without `trees`, its XML is read piece by piece.

    Raises:
        SourceError: it is no archive, or what it unpacks to is too large.
        zipfile.BadZipFile: it is damaged.
    """
    with reading(path), zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        size = sum(part.file_size for part in parts)
        held = sum(part.file_size for part in parts if part.filename.lower().endswith(_TREES))
    if size > _MOST_UNPACKED:
        raise SourceError(str(path), f"it unpacks to {size:,} bytes, more than {_MOST_UNPACKED:,}")
    if trees and held > _LARGEST_TREES:
        problem = f"its XML unpacks to {held:,} bytes, more than {_LARGEST_TREES:,}: split it"
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
        SourceError: the operating system refuses.
        ContentError: it looks binary.
    """
    text = decoded(read_bytes(path), "text/plain")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def reason_of(error: OSError) -> str:
    """Say what the operating system said, without the path."""
    return f"cannot be read: {error.strerror or error}"

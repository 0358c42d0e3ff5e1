"""The output of loaders: documents with a title, a text, and positions to cite."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from crag.text.blocks import HARD_BREAK, Block, escaped, lines_of_all, placed, text_of, with_forms
from crag.text.encodings import decoded
from crag.text.places import lines_written
from crag.text.words import HOLDS_NO_LONGER, without_markup

Unit = Literal["line", "paragraph", "page", "slide", "sheet", "cell", "part", "row", "record"]

FIELDS = "fields"
"""What marks the block with what a file says of itself: author, date, version."""
_FORMAT = "crag-5"
_SEPARATOR = "\0"
_OLD = re.compile(
    r"(?:\A|[.!?:]\s+)\W*(?:th(?:is|ese|e) [\w ]{1,40} (?:is|are|was|were|has been|have been) )?"
    rf"(?:{HOLDS_NO_LONGER})\b",
    re.IGNORECASE,
)
"""How a document says at its beginning, or in its fields, that another one takes its place."""
_SUPERSEDED = "superseded"
_OPENING, _LONGEST_OPENING = 2, 300
"""Blocks of text before the second heading, and characters of one, that may say so."""


@dataclass(frozen=True, kw_only=True)
class SourceText:
    """One document: a file, or one record of a file."""

    source: str
    """Absolute path, followed by ``#`` and the id or number for a record of a file."""
    title: str
    """May be empty for a record."""
    blocks: Sequence[Block]
    """What a reader sees, in order, each block and its parts with their places."""
    url: str = ""
    unit: Unit
    """The unit of positions, counted from 1."""
    number: int = 0
    """The position of a row or record in the file."""

    @cached_property
    def text(self) -> str:
        """Its canonical Markdown."""
        return text_of(self.blocks)

    @cached_property
    def content_hash(self) -> str:
        """Hash of everything that is stored of the document."""
        lines = lines_of_all(self.blocks)
        places = lines_written((one.first, one.last) for one in lines)
        return digest(_FORMAT, self.unit, self.url, self.title, places, self.text)

    @property
    def says_nothing(self) -> bool:
        """Whether it has no text, or none but headings."""
        return all(block.kind == "heading" for block in self.blocks)


def read_text(path: Path) -> str:
    """Read a text file with line feeds as its only line ends.

    Raises:
        ContentError: it looks binary.
    """
    text = decoded(path.read_bytes(), "text/plain")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def in_units(
    path: Path, title: str, parts: Iterable[Sequence[Block]], unit: Unit, **fields: Any
) -> SourceText:
    """Return a file of pages, slides or the like as one document; each part has its number."""
    blocks = [one for number, part in enumerate(parts, 1) for one in placed(part, number)]
    return of_blocks(path, title, blocks, unit, **fields)


def of_blocks(  # noqa: PLR0913 - what a document is made of
    path: Path,
    title: str,
    blocks: Sequence[Block],
    unit: Unit,
    *,
    fields: Mapping[str, str] | None = None,
    fields_at: tuple[int, int] = (1, 1),
    **others: Any,
) -> SourceText:
    """Return a file as one document; what it says of itself, its `fields`, stands before it.

    Without a title it has that of its first heading of level 1, or the file's name without suffix.
    If it says that it is superseded, so does its title, which stands with all that is quoted of it.
    """
    blocks = with_forms(blocks)
    heading = next((one.text for one in blocks if one.kind == "heading" and one.level == 1), "")
    title = without_markup(title or heading) or path.stem
    if _is_superseded(fields or {}, blocks) and _SUPERSEDED not in title.casefold():
        title = f"{title} ({_SUPERSEDED})"
    if fields:
        said = (f"{name[:1].upper()}{name[1:]}: {escaped(text)}" for name, text in fields.items())
        blocks = [Block("text", *fields_at, HARD_BREAK.join(said), info=FIELDS), *blocks]
    return SourceText(source=str(path), title=title, blocks=blocks, unit=unit, **others)


def _is_superseded(fields: Mapping[str, str], blocks: Sequence[Block]) -> bool:
    """Return whether a document says of itself that it no longer holds."""
    headings = [at for at, block in enumerate(blocks) if block.kind == "heading"]
    opening = [block for block in blocks[: [*headings, *[len(blocks)] * 2][1]] if block.text]
    texts = [block.text for block in opening if block.kind == "text"][:_OPENING]
    said = [*fields.values(), *(text for text in texts if len(text) <= _LONGEST_OPENING)]
    return any(_OLD.search(without_markup(text)) for text in said)


@dataclass(frozen=True)
class Unusable:
    """A source that is not indexed, and why: what a loader yields instead of a document."""

    source: str
    reason: str
    empty: bool = False
    """Whether it is readable but empty, so that its chunks are removed from the index."""


Loaded = SourceText | Unusable
Loader = Callable[[Path], Iterator[Loaded]]
"""Reads one file. It may raise anything, which `load` turns into a reason; the message of
`SourceError` and `ContentError` is one."""


def digest(*parts: str) -> str:
    """Hash texts in order, as 32 hexadecimal digits."""
    return hashlib.sha256(_SEPARATOR.join(parts).encode()).hexdigest()[:32]


def file_of(source: str, position: str) -> str:
    """Return the path of the file of `source`, which is a record if a position says so."""
    is_record = position.partition(" ")[0] in {"row", "record"}
    return source.rpartition("#")[0] if is_record else source


def name_of(source: str, root: str) -> str:
    """Return a source without the folder that was indexed: what people call it."""
    if root and source.startswith(root):
        return source[len(root) :].lstrip("/\\") or Path(source).name
    return source

"""What an index is asked and told: folders, hits, changes, and what tells texts apart."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document

from crag.documents.sources import digest
from crag.plain import without_credentials
from crag.text.words import VERSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = 300 + VERSION
"""Version of the stored format, and of the words in it."""
MOST_PLACES = 20
"""Other places of a text that are told."""
_LETTERS = re.compile(r"[^\W\d_]+")


class Stamp(NamedTuple):
    """What an index was created with."""

    schema: int
    embeddings: str
    """Name of the embedding model."""
    dimension: int
    """Length of its vectors."""


def patterns_of(folder: str) -> tuple[str, ...]:
    r"""Return the patterns of SQL's LIKE, with the escape ``\``, of sources in a folder.

    It is an absolute path, of a folder or a file; or the end or middle of one, such as ``api/v2``.
    """
    path = PurePath(folder).as_posix().strip("/")
    if not path:
        return ("/%",)
    escaped = path.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    start = "/" if PurePath(folder).is_absolute() else "%/"
    return tuple(f"{start}{escaped}{end}" for end in ("", "/%", "#%"))


class Hit(NamedTuple):
    """A text that a search found."""

    number: int
    """Of the text in its index; several chunks may have the text."""
    alike: int
    """What nearly equal texts have in common; see `alike`."""


class Passage(NamedTuple):
    """What ranking needs of a text that was found."""

    number: int
    heading: str
    """The title of its document and the headings above it."""
    text: str
    alike: int
    cosine: float = 0.0
    """Of its vector and that of the question."""


Term = tuple[str, ...]
"""Words that follow each other, mostly one alone, as `crag.text.words` makes them."""


def heading_of(chunk: Document) -> str:
    """Return the title of a chunk's document and the headings above the chunk."""
    known = chunk.metadata
    return f"{known.get('title') or ''} {known.get('section') or ''}".strip()


def text_key(chunk: Document) -> str:
    """Return what chunks have in common that are stored, embedded and found as one text."""
    known = chunk.metadata
    parts = (known.get("title"), known.get("section"), chunk.page_content)
    return digest(*(str(part or "") for part in parts))


def alike(text: str) -> int:
    """Return a number that texts share which differ in nothing but numbers and punctuation.

    >>> alike("12:04 pump 3 ok") == alike("12:05 pump 7 ok")
    True
    """
    words = " ".join(_LETTERS.findall(text.casefold())) or text
    start = hashlib.blake2b(words.encode(), digest_size=8).digest()
    return int.from_bytes(start, signed=True)


def unit(vectors: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return vectors of length 1, so that their products are cosines."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.ascontiguousarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)


def placed(chunks: Sequence[Document]) -> Document:
    """Return the first of some chunks of one text, with the places of the others as `also`."""
    places = [
        {key: place.get(key, "") for key in ("source", "position")}
        for chunk in chunks
        for place in (chunk.metadata, *chunk.metadata.get("also", ()))
    ]
    also = [place for number, place in enumerate(places) if place not in places[:number]]
    more = {"also": also[1 : MOST_PLACES + 1]} if len(also) > 1 else {}
    first = chunks[0]
    return Document(first.page_content, id=first.id, metadata={**first.metadata, **more})


def sentence_of(error: Exception) -> str:
    """Return what an error says, on one line, with the full stop of a sentence."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith((".", "?", "!")) else f"{text}."


def safe_location(location: str) -> str:
    """Return a location as it may be shown: a URL without user, password and parameters."""
    return without_credentials(location).partition("?")[0] if "://" in location else location


class Change(NamedTuple):
    """What is written in one transaction."""

    chunks: Sequence[Document] = ()
    """One with a known id replaces the old one."""
    vectors: "NDArray[np.float32] | Sequence[Any]" = ()
    """One for each chunk, of any length."""
    removed: Sequence[str] = ()
    """Ids; unknown ones are ignored."""

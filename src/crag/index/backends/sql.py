"""What the back ends of the index share: texts and the chunks of them, in two tables of SQL.

Chunks of one `text_key` share a text, with its words and its vector. Queries are written once, with
`:name` for values; a back end says in its `dialect` what its database calls otherwise.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.documents import Document

from crag.documents.sources import digest
from crag.plain import without_credentials
from crag.text.words import VERSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCHEMA = 400 + VERSION
"""Version of the stored format, and of the words in it."""
MOST_PLACES = 20
"""Other places of a text that are told."""
Run = Callable[..., list[Any]]
"""Runs a query with values by name, and returns its rows."""
DECIMALS = 6
"""Cosines are rounded, so that equal vectors are in the order of their numbers."""
PAGE = 10_000
_CHUNKS = "SELECT id, text, CAST(metadata AS text), place FROM crag_chunks JOIN crag_texts"
_STORED = f"""
{_CHUNKS} USING (number) WHERE place > :last AND {{condition}} ORDER BY place LIMIT {PAGE}
"""
_DOCUMENTS = f"""
{_CHUNKS} USING (number) WHERE number = :number
ORDER BY NOT ({{condition}}), place LIMIT {MOST_PLACES + 1}
"""
_KEYS = "SELECT key FROM crag_texts WHERE key IN (SELECT value FROM {each})"
_VECTORS = "SELECT key, {vector} FROM crag_texts WHERE key IN (SELECT value FROM {each})"
_PASSAGES = """
SELECT number, heading, text, {vector} FROM crag_texts
WHERE number IN (SELECT CAST(value AS bigint) FROM {each})
"""
_REMOVE = "DELETE FROM crag_chunks WHERE id IN (SELECT value FROM {each}) RETURNING number"
_REMOVE_TEXTS = """
DELETE FROM crag_texts WHERE number IN (SELECT CAST(value AS bigint) FROM {each})
AND NOT EXISTS (SELECT 1 FROM crag_chunks WHERE crag_chunks.number = crag_texts.number)
RETURNING number, key, heading, text
"""
_ADD_CHUNK = """
INSERT INTO crag_chunks (id, number, metadata)
VALUES (:id, (SELECT number FROM crag_texts WHERE key = :key), {new})
"""


class Stamp(NamedTuple):
    """What an index was created with."""

    schema: int
    embeddings: str
    """Name of the embedding model."""
    dimension: int
    """Length of its vectors."""


class Passage(NamedTuple):
    """What ranking needs of a text that was found."""

    number: int
    """Of the text in its index; several chunks may have the text."""
    heading: str
    """The title of its document and the headings above it."""
    text: str
    cosine: float = 0.0
    """Of its vector and that of the question."""


Term = tuple[str, ...]
"""Words that follow each other, mostly one alone, as `crag.text.words` makes them."""


class Change(NamedTuple):
    """What is written in one transaction."""

    chunks: Sequence[Document] = ()
    """One with a known id replaces the old one."""
    vectors: "NDArray[np.float32] | Sequence[Any]" = ()
    """One for each chunk, of any length."""
    removed: Sequence[str] = ()
    """Ids; unknown ones are ignored."""


class Index(ABC):
    """Stores chunks and the texts that they have, and finds texts by vector and by words.

    An instance belongs to one location. It opens on first use, and again after `close`. A killed
    process leaves an index that opens, with all of a write or nothing of it. Methods that read are
    called from several threads at once, and see what other processes have written.

    Raises:
        DocumentIndexError: from every method, if the index cannot be used.
    """

    location: str
    """The location as it may be shown: without secrets."""
    dialect: Mapping[str, str]
    """What stands for the names in braces of queries."""
    by_words_query: str
    """Finds the numbers of the `:k` texts that match `:terms` best, among `{numbers}`."""

    @abstractmethod
    def stamp(self) -> Stamp | None:
        """Return what the index was created with, or None if there is none; creates nothing."""

    @abstractmethod
    def create(self, stamp: Stamp) -> None:
        """Create the index; only called within `writing`, when there is none."""

    @abstractmethod
    def by_vector(self, vector: Sequence[float], k: int, folder: str = "") -> list[int]:
        """Return the numbers of the `k` texts nearest by cosine, nearest first."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """Keep other runs from writing, repair what a killed one left, and save at the end.

        Raises:
            DocumentIndexError: another run is writing.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the index; it reopens on use."""

    @abstractmethod
    def transaction(self, *, writes: bool = False) -> AbstractContextManager[Run]:
        """Give what runs queries, all of them or none; what they raise is translated."""

    @abstractmethod
    def add_text(
        self, run: Run, key: str, heading: str, text: str, vector: "NDArray[np.float32]"
    ) -> None:
        """Store a text that is new, with its words and its vector."""

    def removed_text(self, run: Run, number: int, key: str, heading: str, text: str) -> None:  # noqa: B027 - a database may remove it itself
        """Remove what else is stored of a text that was removed."""

    @staticmethod
    @abstractmethod
    def vector_of(stored: Any) -> "NDArray[np.float32]":
        """Return a vector as it was stored."""

    @staticmethod
    @abstractmethod
    def matching(terms: Sequence[Term]) -> str:
        """Return the expression of the database that any of the terms matches."""

    def count(self) -> int:
        """Return the number of chunks."""
        return int(self.rows("SELECT count(*) FROM crag_chunks")[0][0])

    def stored(self, folder: str = "") -> Iterator[Document]:
        """Yield the chunks of a folder, or all, in the order in which they were stored."""
        condition, values = _condition(folder)
        last = 0
        while rows := self.rows(_STORED, condition, last=last, **values):
            last = rows[-1][3]
            yield from map(_chunk, rows)

    def vectors(self, keys: Sequence[str]) -> "dict[str, NDArray[np.float32]]":
        """Return the vectors of those texts that are stored, by `text_key`."""
        rows = self.rows(_VECTORS, values=json.dumps(list(keys)))
        return {key: self.vector_of(stored) for key, stored in rows}

    def by_words(self, terms: Sequence[Term], k: int, folder: str = "") -> list[int]:
        """Return the `k` texts that have most of the terms, rare ones most, best first."""
        if not terms:
            return []
        numbers, values = among(folder)
        query = self.by_words_query.replace("{numbers}", numbers)
        rows = self.rows(query, terms=self.matching(terms), k=k, **values)
        return [number for (number,) in rows]

    def holders(self, terms: Sequence[Term]) -> tuple[int, list[int]]:
        """Return the number of texts, and how many have each of the terms."""
        query = "SELECT count(*) FROM {matches}"
        total = self.rows("SELECT count(*) FROM crag_texts")[0][0]
        return total, [self.rows(query, terms=self.matching([term]))[0][0] for term in terms]

    def passages(self, numbers: Sequence[int], vector: Sequence[float]) -> list[Passage]:
        """Return texts by number, in any order; without a vector, each cosine is 0."""
        import numpy as np

        rows = self.rows(_PASSAGES, values=json.dumps(list(numbers)))
        if not rows or not len(vector):
            return [Passage(*row[:3]) for row in rows]
        cosines = np.stack([self.vector_of(row[3]) for row in rows]) @ unit(
            np.asarray(vector, np.float32)
        )
        rounded = np.round(cosines, DECIMALS).tolist()
        found = zip(rows, rounded, strict=True)
        return [Passage(*row[:3], cosine) for row, cosine in found]

    def documents(self, numbers: Sequence[int], folder: str = "") -> list[Document]:
        """Return a chunk of a folder for each text, in order, with its other places as `placed`."""
        condition, values = _condition(folder)
        found = (self.rows(_DOCUMENTS, condition, number=number, **values) for number in numbers)
        return [placed(list(map(_chunk, rows))) for rows in found if rows]

    def write(self, change: Change) -> None:
        """Write a change, all of it or nothing; it is durable when the method returns."""
        import numpy as np

        keys = [text_key(chunk) for chunk in change.chunks]
        units = unit(np.asarray(change.vectors, np.float32)) if keys else ()
        replaced = [*change.removed, *(str(chunk.id) for chunk in change.chunks)]
        with self.transaction(writes=True) as run:
            touched = run(_REMOVE, values=json.dumps(replaced))
            known = {key for (key,) in run(_KEYS, values=json.dumps(keys))}
            for key, chunk, vector in zip(keys, change.chunks, units, strict=True):
                if key not in known:
                    self.add_text(run, key, heading_of(chunk), chunk.page_content, vector)
                    known.add(key)
                run(_ADD_CHUNK, id=chunk.id, key=key, new=json.dumps(chunk.metadata))
            numbers = list({number for (number,) in touched})
            for unused in run(_REMOVE_TEXTS, values=json.dumps(numbers)):
                self.removed_text(run, *unused)

    def rows(self, query: str, condition: str = "", **values: Any) -> list[Any]:
        """Return what a query finds in chunks of a `condition`."""
        with self.transaction() as run:
            return run(query.replace("{condition}", condition), **values)


def among(folder: str) -> tuple[str, dict[str, str]]:
    """Return a condition on the numbers of texts, and its values."""
    condition, values = _condition(folder)
    if not folder:
        return condition, values
    return f"number IN (SELECT number FROM crag_chunks WHERE {condition})", values  # noqa: S608 - of constants


def _patterns_of(folder: str) -> tuple[str, ...]:
    r"""Return the patterns of SQL's LIKE, with the escape ``\``, of sources in a folder.

    It is an absolute path, of a folder or a file; or the end or middle of one, such as ``api/v2``.
    """
    path = PurePath(folder).as_posix().strip("/")
    if not path:
        return ("/%",)
    escaped = path.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    start = "/" if PurePath(folder).is_absolute() else "%/"
    return tuple(f"{start}{escaped}{end}" for end in ("", "/%", "#%"))


def _condition(folder: str) -> tuple[str, dict[str, str]]:
    """Return a condition on the table of chunks, made of constants, and its values."""
    values = {f"path{n}": one for n, one in enumerate(_patterns_of(folder) if folder else ())}
    sources = (rf"source LIKE :{name} ESCAPE '\'" for name in values)
    return f"({' OR '.join(sources) or 'true'})", values


def _chunk(row: Sequence[Any]) -> Document:
    return Document(row[1], id=row[0], metadata=json.loads(row[2]))


def heading_of(chunk: Document) -> str:
    """Return the title of a chunk's document and the headings above the chunk."""
    known = chunk.metadata
    return f"{known.get('title') or ''} {known.get('section') or ''}".strip()


def text_key(chunk: Document) -> str:
    """Return what chunks have in common that are stored, embedded and found as one text."""
    known = chunk.metadata
    parts = (known.get("title"), known.get("section"), chunk.page_content)
    return digest(*(str(part or "") for part in parts))


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

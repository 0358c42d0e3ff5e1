"""What the back ends of the index share: texts and the chunks of them, in two tables of SQL.

Chunks of one `text_key` share a text, with its words and its vector. Queries are written once, with
`:name` for values; a back end says in its `dialect` what its database calls otherwise.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from crag.index.contract import (
    MOST_PLACES,
    Change,
    Hit,
    Passage,
    Stamp,
    Term,
    heading_of,
    patterns_of,
    placed,
    text_key,
    unit,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
_VECTORS = "SELECT key, {vector} FROM {texts} WHERE key IN (SELECT value FROM {each})"
_PASSAGES = """
SELECT number, heading, text, alike, {vector} FROM {texts}
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
    """Finds number and `alike` of the `:k` texts that match `:terms` best, among `{numbers}`."""

    @abstractmethod
    def stamp(self) -> Stamp | None:
        """Return what the index was created with, or None if there is none; creates nothing."""

    @abstractmethod
    def create(self, stamp: Stamp) -> None:
        """Create the index; only called within `writing`, when there is none."""

    @abstractmethod
    def by_vector(self, vector: Sequence[float], k: int, folder: str = "") -> list[Hit]:
        """Return the `k` texts nearest by cosine, nearest first."""

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

    def by_words(self, terms: Sequence[Term], k: int, folder: str = "") -> list[Hit]:
        """Return the `k` texts that have most of the terms, rare ones most, best first."""
        if not terms:
            return []
        numbers, values = among(folder)
        query = self.by_words_query.replace("{numbers}", numbers)
        return [Hit(*row) for row in self.rows(query, terms=self.matching(terms), k=k, **values)]

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
            return [Passage(*row[:4]) for row in rows]
        cosines = np.stack([self.vector_of(row[4]) for row in rows]) @ unit(
            np.asarray(vector, np.float32)
        )
        rounded = np.round(cosines, DECIMALS).tolist()
        found = zip(rows, rounded, strict=True)
        return [Passage(*row[:4])._replace(cosine=cosine) for row, cosine in found]

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


def _condition(folder: str) -> tuple[str, dict[str, str]]:
    """Return a condition on the table of chunks, made of constants, and its values."""
    values = {f"path{n}": one for n, one in enumerate(patterns_of(folder) if folder else ())}
    sources = (rf"source LIKE :{name} ESCAPE '\'" for name in values)
    return f"({' OR '.join(sources) or 'true'})", values


def _chunk(row: Sequence[Any]) -> Document:
    return Document(row[1], id=row[0], metadata=json.loads(row[2]))

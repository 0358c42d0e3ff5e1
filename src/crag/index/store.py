"""The index of the user's documents: find by words and by meaning, and open for writing."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from typing_extensions import TypedDict

from crag.documents.sources import file_of, name_of
from crag.errors import (
    DocumentIndexError,
    EmbeddingMismatchError,
    EmptyIndexError,
    IndexNotFoundError,
)
from crag.finding import FindBy
from crag.index.backends import open_backend
from crag.index.contract import EVERYTHING, SCHEMA, Filter, Index, Stamp
from crag.text.language import unread_language
from crag.text.words import asks_for_name

if TYPE_CHECKING:
    from crag.index.writer import IndexWriter

_CANDIDATES = 50
"""Chunks that each half finds before both are merged."""
_MEANING = 3
"""How many times a rank by meaning counts as much as one by words; fitted to real documentation."""
_RANK_OFFSET = 5
"""Cormack et al. use 60, which lets a chunk that both halves find late pass the first of either;
over real documentation 1 to 10 found more of the evidence early."""

_known: WeakSet["DocumentIndex"] = WeakSet()
"""The indexes of this process: those that read close when another one has written."""


class IndexedFile(TypedDict):
    """A file of an index."""

    path: str
    name: str
    """The path within the folder that was indexed: what people call it."""
    title: str
    chunks: int
    modified: str
    """The day of its last change; empty if unknown."""


class _Turns:
    """Lets many threads use the open index at once, and one close it while no other does."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._users = self._waiting = 0

    @contextmanager
    def with_others(self) -> Iterator[None]:
        """Use the index within the block, which must not use this again: it may wait for itself."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)
            self._users += 1
        try:
            yield
        finally:
            with self._changed:
                self._users -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no block of others runs; those that come later wait for this one."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._users)
                yield
            finally:
                self._waiting -= 1
                self._changed.notify_all()


class DocumentIndex:
    """An index at `location`: a folder, or an address of one of `crag.index.backends.STORES`.

    The index opens on first use, and opening for reading does not create it. In a folder only one
    process writes at a time; with Chroma there, one that reads sees the vectors from when it opened
    the index. If that is not enough, use a server.

    Raises:
        DocumentIndexError: from every method, when the index cannot be used; the subclasses
            `IndexNotFoundError`, `EmptyIndexError` and `EmbeddingMismatchError` say why.
    """

    def __init__(self, location: str | Path, embeddings: Embeddings) -> None:
        self._given = str(location)
        self._index = open_backend(self._given)
        self._checked = False
        self._turns = _Turns()
        self.embeddings = embeddings
        _known.add(self)

    @property
    def location(self) -> str:
        """The absolute path, or the URL without secrets."""
        return self._index.location

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index as soon as nobody searches; it reopens when it is used."""
        with self._turns.alone():
            self._checked = False
            self._index.close()

    def exists(self) -> bool:
        """Return whether the index exists, empty or not."""
        return check_stamp(self._index, self.embeddings) is not None

    def stored(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Return the id and the metadata of every chunk; none if there is no index."""
        with self.each_stored() as stored:
            return list(stored)

    @contextmanager
    def each_stored(self) -> Iterator[Iterator[tuple[str, Mapping[str, Any]]]]:
        """Give what `stored` returns one by one, as a large index does not fit in memory.

        The index stays open within the block, which must not use it otherwise: it may wait for
        itself.
        """
        with self._turns.with_others():
            yield self._index.stored() if self.exists() else iter(())

    def files(self) -> list[IndexedFile]:
        """Return the files, whose records may be documents, by path; none without an index."""
        files: dict[str, IndexedFile] = {}
        with self.each_stored() as stored:
            for _, metadata in stored:
                path = file_of(metadata["source"], metadata["position"])
                file = files.setdefault(
                    path,
                    IndexedFile(
                        path=path,
                        name=name_of(path, metadata.get("root", "")),
                        title=metadata["title"],
                        chunks=0,
                        modified=metadata.get("modified", ""),
                    ),
                )
                file["chunks"] += 1
        return [files[path] for path in sorted(files)]

    def get(self, ids: Sequence[str]) -> list[Document]:
        """Return the chunks with these ids, in their order; unknown ids are left out."""
        with self._turns.with_others():
            return self._index.get(ids)

    def count(self) -> int:
        """Return the number of chunks, at least 1."""
        with self._turns.with_others():
            if not self.exists():
                raise IndexNotFoundError(self.location)
            chunks = self._index.count()
        if not chunks:
            raise EmptyIndexError(self.location)
        return chunks

    def open(self) -> Self:
        """Open the index now instead of on first use, and return it."""
        self.count()
        self._checked = True
        return self

    def search(
        self, question: str, k: int = 10, *, by: FindBy = "both", where: Filter = EVERYTHING
    ) -> list[Document]:
        """Return the `k` chunks that serve a question best, best first.

        `by` both, the chunks nearest in meaning and those that share the rarest words are merged by
        reciprocal rank (Cormack et al. 2009), of which that in meaning counts three times. It
        counts once if the question holds a name, which many texts of the same meaning may lack, or
        is in a language that the embedding model does not read.
        """
        if not self._checked:
            self.open()
        vector = self.embeddings.embed_query(question) if by != "words" else []
        with self._turns.with_others():
            if by == "words":
                return self._index.get(self._index.by_words(question, k, where))
            if by == "meaning":
                return self._index.get(self._index.by_vector(vector, k, where))
            candidates = max(k, _CANDIDATES)
            by_meaning = self._index.by_vector(vector, candidates, where)
            by_words = self._index.by_words(question, candidates, where)
            alike = asks_for_name(question) or unread_language(self.embeddings, question)
            ids = merged(by_meaning, by_words, 1 if alike else _MEANING)
            return self._index.get(ids[:k])  # Texts of the others are not read.

    @contextmanager
    def writing(self) -> Iterator["IndexWriter"]:
        """Open for writing, and close it for reading, here and wherever this process has it open.

        Raises:
            DocumentIndexError: another run is writing.
        """
        from crag.index.writer import IndexWriter

        self._close_readers()
        index = open_backend(self._given)
        try:
            with index.writing():
                yield IndexWriter(index, self.embeddings)
        finally:
            self._close_readers()

    def _close_readers(self) -> None:
        """Let all of this process see what is written: they reopen when they are used."""
        for index in list(_known):
            if index.location == self.location:
                index.close()


def merged(by_meaning: Sequence[str], by_words: Sequence[str], times: int) -> list[str]:
    """Merge rankings of ids by the sum of reciprocal ranks, those by meaning `times` as much."""
    scores: dict[str, float] = {}
    for weight, ranking in ((times, by_meaning), (1, by_words)):
        for rank, identifier in enumerate(ranking, start=1):
            scores[identifier] = scores.get(identifier, 0.0) + weight / (_RANK_OFFSET + rank)
    return sorted(scores, key=lambda identifier: -scores[identifier])


def check_stamp(index: Index, embeddings: Embeddings) -> Stamp | None:
    """Return what an index was created with, or None if there is none.

    Raises:
        DocumentIndexError: it has another format.
        EmbeddingMismatchError: its vectors come from another model than `embeddings`.
    """
    stamp = index.stamp()
    if stamp is None:
        return None
    if stamp.schema != SCHEMA:
        problem = "it was built by another version of crag. Delete it and index again"
        raise DocumentIndexError(index.location, problem)
    in_use = embedding_name(embeddings)
    if stamp.embeddings != in_use:
        raise EmbeddingMismatchError(index.location, stamp.embeddings, in_use)
    return stamp


def embedding_name(embeddings: Embeddings) -> str:
    """Return the name of an embedding model, or of its class."""
    for attribute in ("name", "model_name", "model"):
        name = getattr(embeddings, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(embeddings).__name__

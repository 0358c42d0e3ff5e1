"""Write to the index: whole documents, the new version before the old one is deleted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.documents import Document

from crag.errors import DocumentIndexError, EmbeddingMismatchError
from crag.retrieval.checkpoint import save, sole_writer, unsaved
from crag.retrieval.chroma import DATABASE, index_errors
from crag.retrieval.connection import Connection, embedding_name
from crag.retrieval.splitting import text_to_embed

if TYPE_CHECKING:
    import numpy as np
    from chromadb import Collection
    from numpy.typing import NDArray

_T = TypeVar("_T")

_SLICE = 256
"""Texts passed to the encoder at once; a multiple of its batch."""
_PAGE = 5000
_FEWEST_UNSAVED = 1000
_MOST_UNSAVED = 10_000


@dataclass
class Entry:
    """The content of the index from one source."""

    root: str
    position: str
    """Metadata of its first chunk."""
    versions: dict[str, list[str]] = field(default_factory=dict)
    """Content hash to ids of chunks; more than one after a killed run."""
    chunks: dict[str, int] = field(default_factory=dict)
    """Content hash to the number of chunks of the complete version."""

    @property
    def unit(self) -> str:
        """The unit of its positions."""
        return self.position.partition(" ")[0]

    def holds(self, content_hash: str) -> bool:
        """Return whether that version is present with all its chunks."""
        return len(self.versions.get(content_hash, ())) == self.chunks.get(content_hash)

    def ids(self, without: str = "") -> list[str]:
        """Return the ids of all versions, or of all but one."""
        versions = (ids for version, ids in self.versions.items() if version != without)
        return list(chain.from_iterable(versions))


class IndexWriter:
    """Writes to an index; created by `DocumentIndex.writing`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._location, self._folder = connection.location, connection.folder

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Lock the folder against other runs; a server is not locked.

        Raises:
            DocumentIndexError: another run is writing.
        """
        if self._folder is None:
            yield
        else:
            with sole_writer(self._folder):
                yield

    def close(self) -> None:
        """Close the database; it reopens on use."""
        self._connection.close()

    def entries(self) -> dict[str, Entry]:
        """Read the content of the index, by source."""
        found: dict[str, Entry] = {}
        if not self._has_database():
            return found
        for identifier, metadata in self._metadata():
            version, source = metadata["content_hash"], metadata["source"]
            entry = found.setdefault(source, Entry(metadata["root"], metadata["position"]))
            entry.versions.setdefault(version, []).append(identifier)
            entry.chunks[version] = metadata["chunks"]
            if metadata["chunk"] == 0:
                entry.position = metadata["position"]
        return found

    def write(
        self,
        documents: Sequence[Sequence[Document]],
        on_embedded: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Embed and write the chunks of several documents, each document in one write.

        Only a document with more chunks than Chroma accepts at once is written in several pieces.
        `on_embedded` receives the number of chunks embedded since its last call.
        """
        vectors = self._embed(list(chain.from_iterable(documents)), on_embedded)
        collection = self._collection_for(vectors.shape[1])
        start = 0
        for batch in _batches(documents, self._most()):
            with index_errors(self._location):
                collection.upsert(
                    ids=[str(chunk.id) for chunk in batch],
                    embeddings=vectors[start : start + len(batch)],
                    documents=[chunk.page_content for chunk in batch],
                    metadatas=[chunk.metadata for chunk in batch],
                )
            start += len(batch)
        if self._folder is not None:
            self.checkpoint(max(_MOST_UNSAVED, collection.count() // 10))

    def delete(self, ids: Sequence[str]) -> None:
        """Delete chunks."""
        for part in _slices(ids, self._most()):
            with index_errors(self._location):
                self._collection().delete(ids=list(part))

    def move(self, positions: Sequence[tuple[str, str]]) -> None:
        """Change the position of chunks by id."""
        for part in _slices(positions, self._most()):
            with index_errors(self._location):
                self._collection().update(
                    ids=[identifier for identifier, _ in part],
                    metadatas=[{"position": position} for _, position in part],
                )

    def checkpoint(self, fewest: int = _FEWEST_UNSAVED) -> None:
        """Save Chroma's graph of vectors if it is behind by at least `fewest` writes.

        Fewer are cheaper to apply at each opening than to save. A server saves on its own.
        """
        if self._folder is not None and self._has_database() and unsaved(self._folder) >= fewest:
            self.close()
            save(self._folder)

    def _embed(
        self, chunks: Sequence[Document], on_embedded: Callable[[int], object]
    ) -> "NDArray[np.float32]":
        """Return vectors in the order of `chunks`; texts are embedded sorted by length."""
        import numpy as np

        texts = [text_to_embed(chunk) for chunk in chunks]
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        parts = []
        for part in _slices(order, _SLICE):
            vectors = self._connection.embeddings.embed_documents([texts[i] for i in part])
            parts.append(np.asarray(vectors, dtype=np.float32))
            on_embedded(len(part))
        return np.concatenate(parts)[np.argsort(order)]

    def _metadata(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        collection = self._connection.collection()
        offset, page = 0, 1
        while collection is not None and page:
            with index_errors(self._location):
                got = collection.get(limit=_PAGE, offset=offset, include=["metadatas"])
            yield from zip(got["ids"], got["metadatas"] or (), strict=True)
            page = len(got["ids"])
            offset += page

    def _collection_for(self, dimension: int) -> "Collection":
        collection = self._connection.collection()
        if collection is None:
            return self._connection.create(dimension)
        recorded = collection.metadata["dimension"]
        if recorded != dimension:
            name = embedding_name(self._connection.embeddings)
            made_with, in_use = (f"{name} of {size} dimensions" for size in (recorded, dimension))
            raise EmbeddingMismatchError(self._location, made_with, in_use)
        return collection

    def _collection(self) -> "Collection":
        collection = self._connection.collection()
        if collection is None:
            raise DocumentIndexError(self._location, "it was deleted while it was in use")
        return collection

    def _has_database(self) -> bool:
        return self._folder is None or (self._folder / DATABASE).is_file()

    def _most(self) -> int:
        return self._connection.client().get_max_batch_size()


def _batches(documents: Sequence[Sequence[Document]], most: int) -> Iterator[list[Document]]:
    """Join whole documents into batches of at most `most` chunks; split only longer documents."""
    batch: list[Document] = []
    for document in documents:
        if batch and len(batch) + len(document) > most:
            yield batch
            batch = []
        *full, rest = _slices(document, most)
        yield from map(list, full)
        batch.extend(rest)
    yield batch


def _slices(items: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    return (items[start : start + size] for start in range(0, len(items), size))

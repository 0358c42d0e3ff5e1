"""Write to the index: whole documents, the new version before the old one is deleted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from crag.documents.splitting import text_to_embed
from crag.errors import EmbeddingMismatchError
from crag.index.contract import SCHEMA, Index, Stamp
from crag.index.store import check_stamp, embedding_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_T = TypeVar("_T")

_SLICE = 256
"""Texts passed to the encoder at once; a multiple of its batch."""


@dataclass
class Entry:
    """The content of the index from one source."""

    root: str
    position: str
    """Metadata of its first chunk."""
    modified: str = ""
    """Day on which the file was modified."""
    versions: dict[str, list[str]] = field(default_factory=dict)
    """Content hash to ids of chunks; more than one after a killed run."""
    chunks: dict[str, int] = field(default_factory=dict)
    """Content hash to the number of chunks of the complete version."""

    def holds(self, content_hash: str) -> bool:
        """Return whether that version is present with all its chunks."""
        return len(self.versions.get(content_hash, ())) == self.chunks.get(content_hash)

    def whole(self) -> list[str]:
        """Return the content hashes of the versions that are present with all their chunks."""
        return [version for version in self.versions if self.holds(version)]

    def ids(self, without: str = "") -> list[str]:
        """Return the ids of all versions, or of all but one."""
        versions = (ids for version, ids in self.versions.items() if version != without)
        return list(chain.from_iterable(versions))


class IndexWriter:
    """Writes to an index; created by `DocumentIndex.writing`."""

    def __init__(self, index: Index, embeddings: Embeddings) -> None:
        self.index, self.embeddings = index, embeddings

    def entries(self) -> dict[str, Entry]:
        """Read the content of the index, by source."""
        found: dict[str, Entry] = {}
        if check_stamp(self.index, self.embeddings) is None:
            return found
        for identifier, metadata in self.index.stored():
            version, source = metadata["content_hash"], metadata["source"]
            modified = metadata.get("modified", "")
            entry = found.setdefault(
                source, Entry(metadata["root"], metadata["position"], modified)
            )
            entry.versions.setdefault(version, []).append(identifier)
            entry.chunks[version] = metadata["chunks"]
            if metadata["chunk"] == 0:
                entry.position, entry.modified = metadata["position"], modified
        return found

    def write(
        self,
        documents: Sequence[Sequence[Document]],
        on_embedded: Callable[[int], object] = lambda _: None,
        vectors: "NDArray[np.float32] | None" = None,
    ) -> None:
        """Embed and write the chunks of several documents, each document in one write.

        Only a document with more chunks than the index takes at once is written in several pieces.
        `on_embedded` receives the number of chunks embedded since its last call; with the `vectors`
        of all chunks, none is.
        """
        if vectors is None:
            chunks = list(chain.from_iterable(documents))
            vectors = embedded(chunks, self.embeddings, on_embedded)
        self._ensure(vectors.shape[1])
        start = 0
        for batch in _batches(documents, self.index.most):
            self.index.add(batch, vectors[start : start + len(batch)])
            start += len(batch)

    def delete(self, ids: Sequence[str]) -> None:
        """Delete chunks."""
        if ids:
            for part in _slices(ids, self.index.most):
                self.index.remove(part)

    def amend(self, changes: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Change metadata of chunks by id."""
        if changes:
            for part in _slices(changes, self.index.most):
                self.index.amend(part)

    def _ensure(self, dimension: int) -> None:
        """Create the index for vectors of the given length, or check that it takes them."""
        stamp = check_stamp(self.index, self.embeddings)
        name = embedding_name(self.embeddings)
        if stamp is None:
            self.index.create(Stamp(SCHEMA, name, dimension))
        elif stamp.dimension != dimension:
            made_with, in_use = (f"{name} of {n} dimensions" for n in (stamp.dimension, dimension))
            raise EmbeddingMismatchError(self.index.location, made_with, in_use)


def embedded(
    chunks: Sequence[Document],
    embeddings: Embeddings,
    on_embedded: Callable[[int], object] = lambda _: None,
) -> "NDArray[np.float32]":
    """Return vectors in the order of `chunks`; texts are embedded sorted by length."""
    import numpy as np

    texts = [text_to_embed(chunk) for chunk in chunks]
    order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
    parts = []
    for part in _slices(order, _SLICE):
        vectors = embeddings.embed_documents([texts[i] for i in part])
        parts.append(np.asarray(vectors, dtype=np.float32))
        on_embedded(len(part))
    return np.concatenate(parts)[np.argsort(order)]


def embedded_parts(
    parts: Sequence[list[Document]],
    embeddings: Embeddings,
    on_embedded: Callable[[int], object] = lambda _: None,
) -> "Iterator[tuple[list[Document], NDArray[np.float32]]]":
    """Yield lists of chunks with their vectors, which are embedded together."""
    vectors = embedded(list(chain.from_iterable(parts)), embeddings, on_embedded)
    start = 0
    for part in parts:
        yield part, vectors[start : start + len(part)]
        start += len(part)


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

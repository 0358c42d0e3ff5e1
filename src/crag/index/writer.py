"""Write to the index: whole documents, the new version in one transaction with the old one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from crag.documents.chunks import text_to_embed
from crag.errors import EmbeddingMismatchError
from crag.index.contract import SCHEMA, Change, Filter, Index, Stamp, text_key
from crag.index.store import check_stamp, embedding_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SLICE = 256
"""Texts passed to the encoder at once; a multiple of its batch."""


@dataclass
class Entry:
    """The content of the index from one source."""

    root: str
    """Metadata of its first chunk, as what follows."""
    position: str
    content_hash: str
    modified: str = ""
    ids: list[str] = field(default_factory=list)


class IndexWriter:
    """Writes to an index; created by `DocumentIndex.writing`."""

    def __init__(self, index: Index, embeddings: Embeddings) -> None:
        self.index, self.embeddings = index, embeddings

    def entries(self, paths: Iterable[Path]) -> dict[str, Entry]:
        """Read what the index has of files and folders, by source."""
        found: dict[str, Entry] = {}
        if check_stamp(self.index, self.embeddings) is None:
            return found
        stored = (self.index.stored(Filter(folder=str(path))) for path in paths)
        for identifier, known in {one.id: one.metadata for one in chain(*stored)}.items():
            new = Entry(
                *(known.get(one, "") for one in ("root", "position", "content_hash", "modified"))
            )
            found.setdefault(known["source"], new).ids.append(str(identifier))
        return found

    def write(self, change: Change, on_embedded: Callable[[int], object] = lambda _: None) -> None:
        """Write a change in one transaction, embedding its chunks unless it has vectors for all.

        Texts that the index has are not embedded again. `on_embedded` receives the number of chunks
        embedded since its last call.
        """
        stamp = check_stamp(self.index, self.embeddings)
        if change.chunks:
            if len(change.vectors) != len(change.chunks):
                vectors = self._vectors(change.chunks, on_embedded, is_new=stamp is None)
                change = change._replace(vectors=vectors)
            name, dimension = embedding_name(self.embeddings), len(change.vectors[0])
            if stamp is None:
                self.index.create(Stamp(SCHEMA, name, dimension))
            elif stamp.dimension != dimension:
                made_with, in_use = (
                    f"{name} of {n} dimensions" for n in (stamp.dimension, dimension)
                )
                raise EmbeddingMismatchError(self.index.location, made_with, in_use)
        if change.chunks or change.removed or change.amended:
            self.index.write(change)

    def _vectors(
        self, chunks: Sequence[Document], on_embedded: Callable[[int], object], *, is_new: bool
    ) -> "NDArray[np.float32]":
        import numpy as np

        keys = [text_key(chunk) for chunk in chunks]
        known = {} if is_new else dict(self.index.vectors(keys))
        new = {key: chunk for key, chunk in zip(keys, chunks, strict=True) if key not in known}
        on_embedded(len(chunks) - len(new))
        if new:
            made = embedded(list(new.values()), self.embeddings, on_embedded)
            known |= dict(zip(new, made, strict=True))
        return np.stack([known[key] for key in keys])


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
    for start in range(0, len(order), _SLICE):
        part = order[start : start + _SLICE]
        vectors = embeddings.embed_documents([texts[i] for i in part])
        parts.append(np.asarray(vectors, dtype=np.float32))
        on_embedded(len(part))
    return np.concatenate(parts)[np.argsort(order)]


def embedded_parts(
    parts: Sequence[list[Document]], embeddings: Embeddings
) -> "Iterator[tuple[list[Document], NDArray[np.float32]]]":
    """Yield lists of chunks with their vectors, which are embedded together."""
    vectors = embedded(list(chain.from_iterable(parts)), embeddings)
    start = 0
    for part in parts:
        yield part, vectors[start : start + len(part)]
        start += len(part)

"""The index of the user's documents: find by words and by meaning, and open for writing."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from typing_extensions import TypedDict

from crag.documents.sources import file_of, name_of
from crag.errors import (
    DocumentIndexError,
    EmbeddingMismatchError,
    IndexNotFoundError,
)
from crag.index.backends import open_backend
from crag.index.backends.sql import SCHEMA, Change, Index, Stamp, text_key
from crag.index.ranking import Asked, find
from crag.settings import FindBy
from crag.text.language import reads

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class IndexedFile(TypedDict):
    """A file of an index."""

    path: str
    name: str
    """The path within the folder that was indexed: what people call it."""
    title: str
    chunks: int


@dataclass
class Entry:
    """The content of the index from one source."""

    position: str
    """Metadata of its first chunk, as what follows."""
    content_hash: str
    ids: list[str] = field(default_factory=list)


class DocumentIndex:
    """An index at `location`: a folder, or an address of one of `crag.index.backends.STORES`.

    The index opens on first use, and opening for reading does not create it. In a folder only one
    process writes at a time; others read meanwhile, and see each write.

    Raises:
        DocumentIndexError: from every method, when the index cannot be used; the subclasses
            `IndexNotFoundError` and `EmbeddingMismatchError` say why.
    """

    def __init__(self, location: str | Path, embeddings: Embeddings) -> None:
        self._given = str(location)
        self._index = open_backend(self._given)
        self._checked = False
        self.embeddings = embeddings

    @property
    def location(self) -> str:
        """The absolute path, or the URL without secrets."""
        return self._index.location

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the index; it reopens when it is used."""
        self._checked = False
        self._index.close()

    def exists(self) -> bool:
        """Return whether the index exists, empty or not."""
        return check_stamp(self._index, self.embeddings) is not None

    def stored(self, folder: str = "") -> Iterator[Document]:
        """Yield every chunk of a folder, or all; none if there is no index."""
        if self.exists():
            yield from self._index.stored(folder)

    def files(self) -> list[IndexedFile]:
        """Return the files, whose records may be documents, by path; none without an index."""
        files: dict[str, IndexedFile] = {}
        for metadata in (chunk.metadata for chunk in self.stored()):
            path = file_of(metadata["source"], metadata["position"])
            file = files.setdefault(
                path,
                IndexedFile(
                    path=path,
                    name=name_of(path, metadata.get("root", "")),
                    title=metadata["title"],
                    chunks=0,
                ),
            )
            file["chunks"] += 1
        return [files[path] for path in sorted(files)]

    def count(self) -> int:
        """Return the number of chunks, at least 1."""
        if not self.exists():
            raise IndexNotFoundError(self.location)
        chunks = self._index.count()
        if not chunks:
            raise IndexNotFoundError(self.location, "it is empty")
        return chunks

    def open(self) -> Self:
        """Open the index now instead of on first use, and return it."""
        self.count()
        self._checked = True
        return self

    def search(
        self, question: str, k: int = 10, *, by: FindBy = "both", folder: str = ""
    ) -> list[Document]:
        """Return the `k` chunks that serve a question best, best first.

        `by` both, what is near in meaning and what has the rare words of the question get one
        score; see `crag.index.ranking`. Texts that are equal are returned once, with all their
        places in the metadata `also`.
        """
        if not self._checked:
            self.open()
        asked = Asked(question, by)
        if by != "words":
            vector = self.embeddings.embed_query(question)
            asked = Asked(question, by, vector, reads(self.embeddings, question))
        return find(self._index, asked, k, folder)

    @contextmanager
    def writing(self) -> Iterator["DocumentIndex"]:
        """Open for writing; whoever has it open for reading sees each write.

        Raises:
            DocumentIndexError: another run is writing.
        """
        writer = DocumentIndex(self._given, self.embeddings)
        with writer._index.writing():
            yield writer

    def entries(self, paths: Iterable[Path]) -> dict[str, Entry]:
        """Read what the index has of files and folders, by source."""
        found: dict[str, Entry] = {}
        stored = chain(*(self.stored(str(path)) for path in paths))
        for identifier, known in {one.id: one.metadata for one in stored}.items():
            new = Entry(known["position"], known["content_hash"])
            found.setdefault(known["source"], new).ids.append(str(identifier))
        return found

    def write(self, change: Change) -> None:
        """Write a change in one transaction, embedding its chunks unless it has vectors for all.

        Texts that the index has are not embedded again. Only called within `writing`.
        """
        stamp = check_stamp(self._index, self.embeddings)
        if change.chunks:
            if len(change.vectors) != len(change.chunks):
                known = self._vectors(change.chunks, is_new=stamp is None)
                change = change._replace(vectors=[known[text_key(one)] for one in change.chunks])
            name, dimension = embedding_name(self.embeddings), len(change.vectors[0])
            if stamp is None:
                self._index.create(Stamp(SCHEMA, name, dimension))
            elif stamp.dimension != dimension:
                sizes = (f"{name} of {n} dimensions" for n in (stamp.dimension, dimension))
                raise EmbeddingMismatchError(self.location, *sizes)
        if change.chunks or change.removed:
            self._index.write(change)

    def _vectors(
        self, chunks: Sequence[Document], *, is_new: bool
    ) -> "dict[str, NDArray[np.float32]]":
        texts = {text_key(chunk): chunk for chunk in chunks}
        known = {} if is_new else self._index.vectors(list(texts))
        new = {key: chunk for key, chunk in texts.items() if key not in known}
        return known | dict(zip(new, embedded(list(new.values()), self.embeddings), strict=True))


def embedded(chunks: Sequence[Document], embeddings: Embeddings) -> "Sequence[NDArray[np.float32]]":
    """Return vectors in the order of `chunks`."""
    import numpy as np

    from crag.documents.chunks import text_to_embed

    if not chunks:
        return ()
    return list(
        np.asarray(embeddings.embed_documents(list(map(text_to_embed, chunks))), np.float32)
    )


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

"""The index of the user's documents, in Chroma: a folder or a server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from langchain_core.embeddings import Embeddings

from crag.errors import EmptyIndexError, IndexNotFoundError
from crag.retrieval.chroma import COLLECTION, check_folder, index_errors, is_server
from crag.retrieval.connection import Connection

if TYPE_CHECKING:
    from chromadb import Collection
    from langchain_chroma import Chroma

    from crag.retrieval.writer import IndexWriter


class DocumentIndex:
    """An index at `location`: a folder, or the http(s) URL of a Chroma server.

    The index opens on first use, and opening for reading does not create it. In a folder only one
    process writes at a time, and a reading process sees the content from when it opened the index.
    If that is not enough, use a server.

    Raises:
        DocumentIndexError: from every method, when the index cannot be used; the subclasses
            `IndexNotFoundError`, `EmptyIndexError` and `EmbeddingMismatchError` say why.
    """

    def __init__(self, location: str | Path, embeddings: Embeddings) -> None:
        text = str(location)
        self.location = text if is_server(text) else str(Path(text).expanduser().resolve())
        self.embeddings = embeddings
        self._connection = Connection(self.location, embeddings)
        self._chroma: Chroma | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; it reopens when the index is used."""
        with self._lock:
            self._chroma = None
            self._connection.close()

    def exists(self) -> bool:
        """Return whether the index exists, empty or not."""
        try:
            self._existing()
        except IndexNotFoundError:
            return False
        return True

    def count(self) -> int:
        """Return the number of chunks, at least 1."""
        collection = self._existing()
        with index_errors(self.location):
            chunks = collection.count()
        if not chunks:
            raise EmptyIndexError(self.location)
        return chunks

    def open(self) -> Self:
        """Open the index now instead of on first use, and return it."""
        self.count()
        return self

    def chroma(self) -> "Chroma":
        """Return the index as LangChain's Chroma store, valid until the index is closed."""
        from langchain_chroma import Chroma

        with self._lock:
            if self._chroma is None:
                self.open()
                with index_errors(self.location):
                    self._chroma = Chroma(
                        COLLECTION,
                        self.embeddings,
                        client=self._connection.client(),
                        create_collection_if_not_exists=False,
                    )
            return self._chroma

    @contextmanager
    def writing(self) -> Iterator["IndexWriter"]:
        """Open for writing, and close it for reading.

        Raises:
            DocumentIndexError: another run is writing to the same folder.
        """
        from crag.retrieval.writer import IndexWriter

        self.close()
        writer = IndexWriter(Connection(self.location, self.embeddings))
        with writer.alone():
            try:
                yield writer
                writer.checkpoint()
            finally:
                writer.close()

    def _existing(self) -> "Collection":
        if not is_server(self.location):
            check_folder(Path(self.location))
        collection = self._connection.collection()
        if collection is None:
            raise IndexNotFoundError(self.location)
        return collection

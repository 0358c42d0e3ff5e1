"""An open database: its collection and its embedding model."""

import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.embeddings import Embeddings

from crag.errors import DocumentIndexError, EmbeddingMismatchError
from crag.retrieval.checkpoint import NEVER, files_locked, set_threshold
from crag.retrieval.chroma import (
    COLLECTION,
    close_client,
    find_collection,
    index_errors,
    is_server,
    open_client,
)

if TYPE_CHECKING:
    from chromadb import Collection
    from chromadb.api.client import Client
    from chromadb.api.collection_configuration import CreateHNSWConfiguration

SCHEMA = 1
"""Version of the stored format of a chunk."""


class Connection:
    """Opens the database at `location` when it is used, and again after `close`; thread-safe.

    Raises:
        DocumentIndexError: from every method, when the database cannot be used.
        EmbeddingMismatchError: when its vectors come from another model than `embeddings`.
    """

    def __init__(self, location: str, embeddings: Embeddings) -> None:
        self.location = location
        self.folder = None if is_server(location) else Path(location)
        self.embeddings = embeddings
        self._client: Client | None = None
        self._collection: Collection | None = None
        self._lock = threading.Lock()

    def client(self) -> "Client":
        """Return the client; creates a database if the folder has none."""
        with self._lock:
            return self._client or self._open()

    def collection(self) -> "Collection | None":
        """Return the collection of chunks, if there is one."""
        self.client()
        return self._collection

    def create(self, dimension: int) -> "Collection":
        """Create the collection for vectors of the given length, compared by cosine."""
        hnsw: CreateHNSWConfiguration = {"space": "cosine"}
        if self.folder is not None:
            hnsw["sync_threshold"] = NEVER
        metadata = {
            "schema": SCHEMA,
            "embeddings": embedding_name(self.embeddings),
            "dimension": dimension,
        }
        with index_errors(self.location):
            self._collection = self.client().create_collection(
                COLLECTION,
                metadata=metadata,
                configuration={"hnsw": hnsw},
                embedding_function=None,
            )
        return self._collection

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            if self._client is not None:
                close_client(self._client)
            self._client = self._collection = None

    def _open(self) -> "Client":
        with files_locked(self.folder) if self.folder else nullcontext():
            client = open_client(self.location)
            try:
                collection = find_collection(client, self.location)
                if collection is not None:
                    self._load(collection)
            except DocumentIndexError:
                close_client(client)
                raise
        self._client, self._collection = client, collection
        return client

    def _load(self, collection: "Collection") -> None:
        _check_model(collection, self.embeddings, self.location)
        with index_errors(self.location):
            if self.folder is not None:
                set_threshold(collection, NEVER)
            collection.count()


def embedding_name(embeddings: Embeddings) -> str:
    """Return the name of an embedding model, or of its class."""
    for attribute in ("name", "model_name", "model"):
        name = getattr(embeddings, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(embeddings).__name__


def _check_model(collection: "Collection", embeddings: Embeddings, location: str) -> None:
    recorded = collection.metadata or {}
    if recorded.get("schema") != SCHEMA:
        problem = "it was built by another version of crag. Delete it and index again"
        raise DocumentIndexError(location, problem)
    in_use = embedding_name(embeddings)
    if recorded.get("embeddings") != in_use:
        raise EmbeddingMismatchError(location, str(recorded.get("embeddings")), in_use)

"""Stores of vectors behind the index in a file: Chroma, or any `VectorStore` of LangChain.

LangChain's `VectorStore` finds by vector, adds and deletes. It has no transactions and does not
list what it holds, so that `FileIndex` tells it what to add, and when to begin anew.
"""

import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from crag.errors import CragError, DocumentIndexError
from crag.extras import attribute_named
from crag.index.backends.sqlite_file import FileIndex
from crag.index.store import sentence_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLLECTION = "crag"
"""Name of the collection in Chroma."""
GRAPH = {
    "space": "cosine",
    "ef_construction": 200,
    "max_neighbors": 32,
    "ef_search": 1000,
    "sync_threshold": 20_000,
}
"""Of Chroma: with its defaults it loses near texts among many that are alike."""
_POINTS = uuid.UUID("6b1cb8f2-2d33-5c6f-9e0a-3b1a0c6a7d11")
"""Stores get UUIDs, which some ask for, made of the keys of texts within this namespace."""

Build = Callable[[Embeddings], VectorStore | AbstractContextManager[VectorStore]]
"""Returns a store for vectors as long as those of the `Embeddings`, or a context that closes it."""


class MadeVectors(Embeddings):
    """Gives a store the vectors that were made already, where it has its texts embedded."""

    def __init__(self, dimension: int) -> None:
        self._probe = [1.0] + [0.0] * (dimension - 1)
        self.waiting = list[list[float]]()
        """Those of the texts that are added, in their order."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the next vectors, or any if none wait: some stores measure their length."""
        if not self.waiting:
            return [self._probe for _ in texts]
        taken, self.waiting = self.waiting[: len(texts)], self.waiting[len(texts) :]
        return taken

    def embed_query(self, text: str) -> list[float]:
        """Return any vector, because questions are embedded elsewhere."""
        del text
        return self._probe


class StoreOfVectors:
    """The vector store that `build` opens, as `FileIndex` uses it.

    It holds the keys of texts, with their vectors; the texts are in the file. `folder` is where it
    keeps everything, if it is nobody else's: it may be deleted.
    """

    def __init__(self, build: Build, folder: Path | None = None) -> None:
        self._build, self._folder = build, folder
        self._vectors = MadeVectors(1)
        self._store: VectorStore | None = None
        self._closing = ExitStack()

    @contextmanager
    def errors(self, location: str) -> Iterator[None]:
        """Translate whatever a store raises; nobody knows its state then, so it is closed."""
        try:
            yield
        except CragError:
            raise
        except Exception as error:
            self.close()
            advice = "Is it running, and is this its address?"
            problem = f"its vector store failed: {sentence_of(error)} {advice}"
            raise DocumentIndexError(location, problem) from error

    def open(self, dimension: int) -> None:
        """Open the store for vectors of that length, unless it is open."""
        if self._store is None:
            self._vectors = MadeVectors(dimension)
            store = self._build(self._vectors)
            if isinstance(store, AbstractContextManager):
                store = self._closing.enter_context(store)
            self._store = store

    def close(self) -> None:
        """Close the store, if it is open."""
        self._store = None
        self._closing.close()

    def clear(self) -> bool:
        """Delete the store's folder, and return whether it has one."""
        self.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return self._folder is not None

    def add(self, vectors: "Mapping[str, NDArray[np.float32]]") -> None:
        """Add texts that the store does not have, by their keys."""
        self._vectors.waiting = [vector.tolist() for vector in vectors.values()]
        entries = [Document(key, metadata={"key": key}) for key in vectors]
        self._opened().add_documents(entries, ids=list(map(_point, vectors)))

    def remove(self, keys: Sequence[str]) -> None:
        """Remove texts; some stores raise where they do not have one."""
        with suppress(KeyError, ValueError):
            if keys:
                self._opened().delete([_point(key) for key in keys])

    def near(self, vector: "NDArray[np.float32]", k: int) -> list[str]:
        """Return the keys of about the `k` nearest texts."""
        found = self._opened().similarity_search_by_vector(vector.tolist(), k=k)
        return [str(document.metadata["key"]) for document in found]

    def _opened(self) -> VectorStore:
        return cast("VectorStore", self._store)


def chroma_folder(location: str, embeddings: Embeddings) -> FileIndex:
    """Return an index in a folder, whose vectors are in Chroma too."""
    folder = Path(location).expanduser().resolve()
    inner = folder / "chroma"
    return FileIndex(folder, embeddings, StoreOfVectors(partial(_chroma, inner), inner))


@contextmanager
def _chroma(folder: Path, embeddings: Embeddings) -> Iterator[VectorStore]:
    import chromadb
    from chromadb.config import Settings
    from langchain_chroma import Chroma

    client: Any = chromadb.PersistentClient(folder, settings=Settings(anonymized_telemetry=False))
    graph = cast("Any", {"hnsw": GRAPH})
    try:
        yield Chroma(COLLECTION, embeddings, client=client, collection_configuration=graph)
    finally:
        client.close()


def of_function(location: str, embeddings: Embeddings) -> FileIndex:
    """Return an index in the store that a function makes: ``module:function://FOLDER``.

    The function is a `Build`.

    Raises:
        SettingsError: there is no such function.
        DocumentIndexError: no folder is named.
    """
    name, _, place = location.partition("://")
    if not place:
        raise DocumentIndexError(location, f"name a folder for the index: {name}://./FOLDER")
    made = attribute_named(name, "CRAG_INDEX")
    folder = Path(place).expanduser().resolve()
    return FileIndex(folder, embeddings, StoreOfVectors(made), f"{name}://{folder}")


def _point(key: str) -> str:
    return str(uuid.uuid5(_POINTS, key))

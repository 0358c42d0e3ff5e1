"""Stores of vectors behind the index in a file: Chroma, or any `VectorStore` of LangChain."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from crag.errors import DocumentIndexError
from crag.extras import attribute_named
from crag.index.backends.sqlite_file import FileIndex
from crag.plain import real_path

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


def chroma_folder(location: str, embeddings: Embeddings) -> FileIndex:
    """Return an index in a folder, whose vectors are in Chroma too."""
    folder = real_path(location)
    inner = folder / "chroma"
    return FileIndex(folder, embeddings, partial(_chroma, inner), inner)


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

    It takes `Embeddings`, and returns a store for vectors as long as theirs, or a context that
    closes it.

    Raises:
        SettingsError: there is no such function.
        DocumentIndexError: no folder is named.
    """
    name, _, place = location.partition("://")
    if not place:
        raise DocumentIndexError(location, f"name a folder for the index: {name}://./FOLDER")
    made = attribute_named(name, "CRAG_INDEX")
    folder = real_path(place)

    def build(given: Embeddings) -> AbstractContextManager[VectorStore]:
        store = made(given)
        return store if isinstance(store, AbstractContextManager) else nullcontext(store)

    return FileIndex(folder, embeddings, build, location=f"{name}://{folder}")

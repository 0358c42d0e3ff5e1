"""Back ends of the index: Chroma, PostgreSQL, and any vector store of LangChain."""

from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from crag.errors import DocumentIndexError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from crag.index.store import DocumentIndex

_VECTORS = "crag.index.backends.vector_store"
STORES = {
    "FOLDER": f"{_VECTORS}:chroma_folder",
    "postgresql://HOST/DATABASE": "crag.index.backends.postgres:Postgres",
    "MODULE:FUNCTION://./FOLDER": f"{_VECTORS}:of_function",
}
"""From an address as users write it to what opens it, which takes the location and the encoder.

A function of the user's returns a `VectorStore` of LangChain."""


def open_index(location: str | Path, embeddings: "Embeddings") -> "DocumentIndex":
    """Return the index at a folder, or at an address of one of `STORES`; it opens on first use.

    Raises:
        DocumentIndexError: no store has the scheme, or what it names cannot be imported.
        MissingPackageError: it needs a package that is not installed.
    """
    location = str(location)
    scheme = location.partition("://")[0].lower() if "://" in location else ""
    if ":" in scheme:
        address = "MODULE:FUNCTION://./FOLDER"
    elif scheme in {"postgresql", "postgres"}:
        address = "postgresql://HOST/DATABASE"
    elif not scheme:
        address = "FOLDER"
    else:
        raise DocumentIndexError(f"{scheme}://…", f"allowed are {', '.join(STORES)}")
    opener: Callable[[str, Embeddings], DocumentIndex] = resolve_name(STORES[address])
    return opener(location, embeddings)

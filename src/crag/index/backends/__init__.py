"""Back ends of the index: Chroma, PostgreSQL, and any vector store of LangChain."""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from crag.errors import DocumentIndexError

if TYPE_CHECKING:
    from crag.index.backends.sql import Index

_VECTORS = "crag.index.backends.vector_store"
STORES = {
    "FOLDER": f"{_VECTORS}:chroma_folder",
    "postgresql://HOST/DATABASE": "crag.index.backends.postgres:Postgres",
    "MODULE:FUNCTION://./FOLDER": f"{_VECTORS}:of_function",
}
"""From an address as users write it to what opens it, which takes the location.

A function of the user's returns a `VectorStore` of LangChain."""


def open_backend(location: str) -> "Index":
    """Return the back end of a location; it opens on first use.

    Raises:
        DocumentIndexError: no store has the scheme, or what it names cannot be imported.
        MissingPackageError: it needs a package that is not installed.
    """
    scheme = location.partition("://")[0].lower() if "://" in location else ""
    if ":" in scheme:
        address = "MODULE:FUNCTION://./FOLDER"
    elif scheme in {"postgresql", "postgres"}:
        address = "postgresql://HOST/DATABASE"
    elif not scheme:
        address = "FOLDER"
    else:
        raise DocumentIndexError(f"{scheme}://…", f"allowed are {', '.join(STORES)}")
    opener: Callable[[str], Index] = resolve_name(STORES[address])
    return opener(location)

"""Back ends of the index: Chroma in a folder, a Chroma server, PostgreSQL, Qdrant, FAISS.

To add one, write a module with a class that implements `crag.retrieval.index.Index` and takes the
location, and register it in `BACKENDS`; or, from another package, as an entry point of the group
`crag.stores` that is named for its scheme.
"""

from collections.abc import Callable
from importlib import import_module

from crag.errors import DocumentIndexError
from crag.retrieval.index import Index
from crag.runtime import entry_points

BACKENDS: dict[str, str] = {
    "": "crag.retrieval.backends.chroma:ChromaFolder",
    "faiss": "crag.retrieval.backends.faiss:Faiss",
    "http": "crag.retrieval.backends.chroma:ChromaServer",
    "https": "crag.retrieval.backends.chroma:ChromaServer",
    "postgres": "crag.retrieval.backends.postgres:Postgres",
    "postgresql": "crag.retrieval.backends.postgres:Postgres",
    "qdrant": "crag.retrieval.backends.qdrant:Qdrant",
    "qdrant+https": "crag.retrieval.backends.qdrant:Qdrant",
}
"""Scheme of a location to ``module:Class``; a location without a scheme is a folder."""


def open_backend(location: str) -> Index:
    """Return the back end of a location; it opens on first use.

    Raises:
        DocumentIndexError: no back end has the scheme, or the URL is wrong.
        MissingPackageError: it needs a package that is not installed.
    """
    scheme = location.partition("://")[0].lower() if "://" in location else ""
    if scheme not in BACKENDS:
        added: Callable[[str], Index] | None = entry_points.load("crag.stores", scheme)
        if added is not None:
            return added(location)
        schemes = [*filter(None, BACKENDS), *entry_points.names("crag.stores")]
        known = ", ".join(f"{name}://" for name in schemes)
        raise DocumentIndexError(f"{scheme}://…", f"allowed are a folder and the URLs {known}")
    module, _, name = BACKENDS[scheme].partition(":")
    backend: Callable[[str], Index] = getattr(import_module(module), name)
    return backend(location)

"""Back ends of the index: Chroma, PostgreSQL, and any vector store of LangChain.

`STORES` lists them. To add one, write a function that returns a LangChain `VectorStore`, and name
it, ``module:function://FOLDER``. If that is not enough, write a class that implements
`crag.index.contract.Index` and takes the location; from another package, it is an entry point of
the group `crag.stores` that is named for its scheme.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from crag.errors import DocumentIndexError
from crag.runtime import entry_points

if TYPE_CHECKING:
    from crag.index.contract import Index

_CHROMA, _LANGCHAIN = "crag.index.backends.chroma", "crag.index.backends.langchain_store"


class Store(NamedTuple):
    """How a kind of store is named, and what opens it."""

    schemes: tuple[str, ...]
    address: str
    """A location as users write it; words in capitals stand for their own."""
    engine: str
    note: str
    """What else users are told."""
    opener: str
    """``module:callable``; takes the location."""
    extra: str = ""
    """The optional packages that it needs."""


STORES = (
    Store(("",), "FOLDER", "Chroma", "in this process", f"{_CHROMA}:ChromaFolder"),
    Store(
        ("http", "https"), "http://HOST:8000", "Chroma", "a server", f"{_CHROMA}:ChromaServer"
    ),
    Store(
        ("postgresql", "postgres"), "postgresql://HOST/DATABASE", "PostgreSQL",
        "with pgvector 0.8 or newer", "crag.index.backends.postgres:Postgres", "postgres",
    ),
    Store(
        ("qdrant",), "qdrant://./FOLDER", "Qdrant", "in memory",
        f"{_LANGCHAIN}:qdrant", "qdrant",
    ),
    Store(
        ("qdrant", "qdrant+https"), "qdrant://HOST:6333", "Qdrant",
        "a server, also at `qdrant+https://HOST`; its key is `QDRANT_API_KEY`",
        f"{_LANGCHAIN}:qdrant", "qdrant",
    ),
    Store(
        ("faiss",), "faiss://./FOLDER", "FAISS", "all vectors are compared, in memory",
        f"{_LANGCHAIN}:faiss", "faiss",
    ),
    Store(
        (), "MODULE:FUNCTION://./FOLDER", "LangChain",
        "any other `VectorStore`, which a function of yours returns", f"{_LANGCHAIN}:of_function",
    ),
)  # fmt: skip
"""Help, docs and tests are made of this list. Without a scheme, a location is a folder."""


def store_of(location: str) -> Store | None:
    """Return the kind of store that a location names, or None if it is none of `STORES`."""
    scheme = location.partition("://")[0] if "://" in location else ""
    if ":" in scheme:
        return STORES[-1]
    return next((store for store in STORES if scheme.lower() in store.schemes), None)


def open_backend(location: str) -> "Index":
    """Return the back end of a location; it opens on first use.

    Raises:
        DocumentIndexError: no back end has the scheme, or the URL is wrong.
        MissingPackageError: it needs a package that is not installed.
    """
    store = store_of(location)
    if store is not None:
        opener: Callable[[str], Index] = entry_points.imported(store.opener)
        return opener(location)
    scheme = location.partition("://")[0].lower()
    added: Callable[[str], Index] | None = entry_points.load("crag.stores", scheme)
    if added is None:
        others = [f"{name}://…" for name in entry_points.names("crag.stores")]
        known = ", ".join([*(store.address for store in STORES), *others])
        raise DocumentIndexError(f"{scheme}://…", f"allowed are {known}")
    return added(location)

"""Back ends of the index: Chroma, PostgreSQL, and any vector store of LangChain.

`STORES` lists them. To add one, write a function that returns a LangChain `VectorStore`, and name
it, ``module:function://FOLDER``. If that is not enough, name a class that implements
`crag.index.contract.Index` in the same way.
"""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

from crag.errors import DocumentIndexError

if TYPE_CHECKING:
    from crag.index.contract import Index

_VECTORS = "crag.index.backends.vector_store"


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
    Store(("",), "FOLDER", "Chroma", "in this process", f"{_VECTORS}:chroma_folder"),
    Store(
        ("http", "https"), "http://HOST:8000", "Chroma", "a server",
        f"{_VECTORS}:chroma_server",
    ),
    Store(
        ("postgresql", "postgres"), "postgresql://HOST/DATABASE", "PostgreSQL",
        "with pgvector 0.8 or newer", "crag.index.backends.postgres:Postgres", "postgres",
    ),
    Store(
        (), "MODULE:FUNCTION://./FOLDER", "LangChain",
        "any other `VectorStore`, which a function of yours returns", f"{_VECTORS}:of_function",
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
        DocumentIndexError: no store has the scheme, or the URL is wrong.
        MissingPackageError: it needs a package that is not installed.
    """
    store = store_of(location)
    if store is None:
        known = ", ".join(store.address for store in STORES)
        raise DocumentIndexError(f"{location.partition('://')[0]}://…", f"allowed are {known}")
    opener: Callable[[str], Index] = resolve_name(store.opener)
    return opener(location)

"""The index of the user's own documents: embed, store, retrieve.

The names below load when they are asked for: a process that only reads files needs no database.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crag.index.backends import open_index
    from crag.index.retriever import IndexRetriever
    from crag.index.store import DocumentIndex
    from crag.index.update import IndexReport, index_paths

__all__ = ["DocumentIndex", "IndexReport", "IndexRetriever", "index_paths", "open_index"]
_MODULES = {
    "DocumentIndex": "store",
    "IndexReport": "update",
    "IndexRetriever": "retriever",
    "index_paths": "update",
    "open_index": "backends",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

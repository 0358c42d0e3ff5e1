"""The index of the user's own documents: embed, store, retrieve.

Importing this loads no model, no database and no document loader; they load when first used. The
names below load when they are asked for too: a process that only reads files needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crag.documents.isolated import Limits
    from crag.documents.named_loaders import loaders_with
    from crag.documents.sources import Skipped
    from crag.index.retriever import IndexRetriever
    from crag.index.store import DocumentIndex
    from crag.index.update import IndexReport, Progress, index_paths, reader_within

__all__ = [
    "DocumentIndex", "IndexReport", "IndexRetriever", "Limits", "Progress", "Skipped",
    "index_paths", "loaders_with", "reader_within",
]  # fmt: skip
_MODULES = {
    "DocumentIndex": "crag.index.store",
    "IndexReport": "crag.index.update",
    "IndexRetriever": "crag.index.retriever",
    "Limits": "crag.documents.isolated",
    "Progress": "crag.index.update",
    "Skipped": "crag.documents.sources",
    "index_paths": "crag.index.update",
    "loaders_with": "crag.documents.named_loaders",
    "reader_within": "crag.index.update",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)

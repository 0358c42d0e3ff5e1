"""The user's own documents: load, split, embed, store, retrieve.

Importing this loads no model, no database and no document loader; they load when first used. The
names below load when they are asked for too: a process that only reads files needs none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crag.retrieval.documents import Skipped
    from crag.retrieval.ingest import index_paths
    from crag.retrieval.isolated import Limits
    from crag.retrieval.named_loaders import loaders_with
    from crag.retrieval.report import IndexReport, Progress
    from crag.retrieval.retriever import IndexRetriever
    from crag.retrieval.store import DocumentIndex
    from crag.retrieval.update import reader_within
    from crag.retrieval.watch import watch_paths

__all__ = [
    "DocumentIndex", "IndexReport", "IndexRetriever", "Limits", "Progress", "Skipped",
    "index_paths", "loaders_with", "reader_within", "watch_paths",
]  # fmt: skip
_MODULES = {
    "DocumentIndex": "store",
    "IndexReport": "report",
    "IndexRetriever": "retriever",
    "Limits": "isolated",
    "Progress": "report",
    "Skipped": "documents",
    "index_paths": "ingest",
    "loaders_with": "named_loaders",
    "reader_within": "update",
    "watch_paths": "watch",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

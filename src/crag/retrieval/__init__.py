"""The user's own documents: load, split, embed, store, retrieve.

Importing this loads no model, no database and no document loader; they load when first used.
"""

from crag.retrieval.documents import Skipped
from crag.retrieval.ingest import index_paths
from crag.retrieval.named_loaders import loaders_with
from crag.retrieval.report import IndexReport, Progress
from crag.retrieval.retriever import IndexRetriever
from crag.retrieval.store import DocumentIndex
from crag.retrieval.watch import watch_paths

__all__ = [
    "DocumentIndex",
    "IndexReport",
    "IndexRetriever",
    "Progress",
    "Skipped",
    "index_paths",
    "loaders_with",
    "watch_paths",
]

"""What a retriever is passed of the settings, and what it returns."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever

from crag.plain import plain_json, well_formed
from crag.settings import FILTERS, Settings


def options_of(retriever: BaseRetriever | None, settings: Settings) -> dict[str, Any]:
    """Return the settings that the retriever's `invoke` takes as keyword arguments.

    A retriever names them in its attribute `run_settings`. One of a vector store without that
    attribute takes `k`; every other one takes none.
    """
    return {name: getattr(settings, name) for name in _names(retriever)}


def ignored_filters(retriever: BaseRetriever, settings: Settings) -> list[str]:
    """Return the filters that are set, but that the retriever does not take."""
    taken = _names(retriever)
    return [name for name in FILTERS if getattr(settings, name) is not None and name not in taken]


def documents_of(found: Iterable[Document], most: int) -> list[Document]:
    """Return at most `most` documents, their metadata as plain JSON, which every store keeps."""
    return [
        Document(
            id=document.id,
            page_content=well_formed(document.page_content),
            metadata=plain_json(document.metadata),
        )
        for document in islice(found, most)
    ]


def _names(retriever: BaseRetriever | None) -> tuple[str, ...]:
    own = ("k",) if isinstance(retriever, VectorStoreRetriever) else ()
    return tuple(getattr(retriever, "run_settings", own))

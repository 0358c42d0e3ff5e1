"""What a retriever is passed of the settings, and what it returns."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever

from crag.plain import plain_json, well_formed
from crag.settings import Settings


def options_of(retriever: BaseRetriever | None, settings: Settings) -> dict[str, Any]:
    """Return the settings that the retriever's `invoke` takes as keyword arguments.

    A retriever names them in its attribute `run_settings`. One of a vector store without that
    attribute takes `k`; every other one takes none.
    """
    return {name: getattr(settings, name) for name in _names(retriever)}


def ignores_folder(retriever: BaseRetriever, settings: Settings) -> bool:
    """Return whether a folder is set that the retriever does not take."""
    return settings.folder is not None and "folder" not in _names(retriever)


def plain_documents(found: Iterable[Document], most: int) -> list[Document]:
    """Return at most `most` documents, their metadata as plain JSON, which every store keeps.

    Equal texts under one title stand once, as copies would crowd out what else was found. The
    metadata `also` of the first one names the places of the others.
    """
    documents: dict[tuple[str, ...], Document] = {}
    for document in islice(found, most):
        text, metadata = well_formed(document.page_content), plain_json(document.metadata)
        under = (str(metadata.get(name) or "") for name in ("title", "section"))
        own = Document(id=document.id, page_content=text, metadata=metadata)
        first = documents.setdefault((*under, *text.casefold().split()), own)
        if first is not own and isinstance(also := first.metadata.setdefault("also", []), list):
            address = str(metadata.get("url") or metadata.get("source") or "")
            also.append({"source": address, "position": str(metadata.get("position") or "")})
    return list(documents.values())


def _names(retriever: BaseRetriever | None) -> tuple[str, ...]:
    own = ("k",) if isinstance(retriever, VectorStoreRetriever) else ()
    return tuple(getattr(retriever, "run_settings", own))

"""Where texts come from: documents and search hits as sources of strips."""

from collections.abc import Sequence

from langchain_core.documents import Document

from crag.parts import Hit
from crag.state import Source, Strip


def source_of(document: Document, index: int) -> Source:
    """Name the source of a retrieved document by its metadata (`title`, `url` or `source`).

    A document without an id is named by its place in the retrieval, `document-1` first.
    """
    metadata = document.metadata
    url = str(metadata.get("url") or metadata.get("source") or "")
    return Source(
        id=str(document.id or metadata.get("id") or f"document-{index + 1}"),
        title=title_of(document),
        url=url,
        position=str(metadata.get("position") or ""),
    )


def title_of(document: Document) -> str:
    """Return the title in a document's metadata, or an empty text."""
    return str(document.metadata.get("title") or "")


def source_of_hit(hit: Hit, index: int) -> Source:
    """Name the source of a search hit, `hit-1` first."""
    return Source(id=f"hit-{index + 1}", title=hit.title, url=hit.url, position="")


def unscored(text: str, source: Source) -> Strip:
    """Make a strip that nobody has judged yet."""
    return Strip(text=text, source=source, score=None, kept=False, reason="")


def kept_whole(documents: Sequence[Document], reason: str) -> list[Strip]:
    """Make one kept strip of each document that has text, for graphs that do not refine."""
    return [
        Strip(
            text=document.page_content,
            source=source_of(document, index),
            score=None,
            kept=True,
            reason=reason,
        )
        for index, document in enumerate(documents)
        if document.page_content.strip()
    ]

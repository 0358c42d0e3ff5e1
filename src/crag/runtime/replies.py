"""What parts return, as the state holds it; call these within the `Attempt` that calls the part."""

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

from langchain_core.documents import Document

from crag.errors import CragError
from crag.plain import plain_json, well_formed
from crag.state import Usage

Item = TypeVar("Item")


def as_many(found: Iterable[Item], expected: int, part: str) -> list[Item]:
    """Return what a part returned, one for each of the `expected` inputs.

    Raises:
        CragError: it returned more or fewer.
    """
    items = list(found)
    if len(items) != expected:
        raise CragError(f"the {part} returned {len(items)} results for {expected} inputs")
    return items


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


def usage_of(reply: Any) -> Usage:
    """Return one call of a model, and its tokens where it counts them."""
    counted = getattr(reply, "usage_metadata", None) or {}
    usage = Usage(llm_calls=1)
    if isinstance(read := counted.get("input_tokens"), int):
        usage["input_tokens"] = read
    if isinstance(written := counted.get("output_tokens"), int):
        usage["output_tokens"] = written
    return usage

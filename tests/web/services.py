"""What the tests of all search services share."""

from collections.abc import Callable

import pytest

from crag.errors import SearchError
from crag.parts import Hit, WebSearcher
from crag.text.urls import distinct

WAYS = pytest.mark.parametrize("way", ["search", "asearch"])
DEEP = b"[" * 100_000
NO_JSON = [b"<html>maintenance</html>", b"", b'{"results": [', b"\xff\xfe\x00", DEEP]
NO_OBJECT = [b"[]", b"null", b"7", b'"words"', b"true", b"[1]"]

Make = Callable[..., WebSearcher]


async def search(made: WebSearcher, way: str, query: str = "ada", limit: int = 5) -> list[Hit]:
    """Search in one of the two ways; what the graph would not use is left out."""
    direct = made.search(query, limit) if way == "search" else await made.asearch(query, limit)
    assert len(direct) <= limit
    return distinct(direct)


async def failing(made: WebSearcher, way: str, query: str = "ada") -> SearchError:
    """Return the error that the search raises."""
    with pytest.raises(SearchError) as caught:
        await search(made, way, query)
    return caught.value

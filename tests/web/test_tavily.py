"""Tavily's searcher, where it differs from those of `test_search_services.py`."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.errors import SearchError
from crag.parts import Hit
from crag.web import TavilySearcher
from tests.loopback import Loopback, serving
from tests.web.services import failing, search

TEXT = "Ada Lovelace\n\nShe wrote it."
ADA = {
    "title": "Ada",
    "url": "https://example.org/ada",
    "content": "Ada <b>wrote</b> it.",
    "raw_content": TEXT,
    "score": 0.9,
}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving({"query": "ada", "results": [ADA]}) as running:
        yield running


def searcher(server: Loopback, **options: Any) -> TavilySearcher:
    quick: dict[str, Any] = {"timeout": 5, "longest_wait": 0.01}
    return TavilySearcher("tvly-secret", base_url=server.url, **quick | options)


async def test_hits_bring_the_text_of_their_pages_if_it_is_asked_for(server: Loopback) -> None:
    hit = Hit("Ada", "https://example.org/ada", "Ada wrote it.", text=TEXT)
    assert await search(searcher(server)) == [hit]
    await search(searcher(server, raw_content=False))
    sent, plain = server.requests
    assert (sent["path"], sent["max_results"]) == ("/search", 5)
    assert sent["include_raw_content"] == "text"
    assert sent["authorization"] == "Bearer tvly-secret"
    assert "include_raw_content" not in plain


@pytest.mark.parametrize(("status", "problem"), [(432, "request"), (204, "server")])
async def test_statuses_of_its_own(server: Loopback, status: int, problem: str) -> None:
    server.statuses = [status]
    error = await failing(searcher(server))
    assert (error.problem, len(server.requests)) == (problem, 1)


@pytest.mark.parametrize("body", [{"results": None}, {}])
async def test_a_reply_without_results_is_none_found(server: Loopback, body: Any) -> None:
    server.body = body
    assert await search(searcher(server)) == []


def test_the_key_is_needed_and_not_shown() -> None:
    with pytest.raises(SearchError, match="set TAVILY_API_KEY"):
        TavilySearcher(" ")
    assert repr(TavilySearcher("tvly-secret")) == "TavilySearcher('https://api.tavily.com')"

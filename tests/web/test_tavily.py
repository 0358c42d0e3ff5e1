"""Tavily's client against a server on loopback that answers as Tavily does."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.errors import SearchError
from crag.parts import WebSearcher
from crag.web import TavilySearcher
from tests.loopback import Loopback, serving

RESULTS = {
    "results": [
        {"title": "Ada", "url": "https://example.org/ada", "content": "Ada wrote it."},
        {"title": "No address", "content": "cannot be cited"},
        {"title": None, "url": "https://example.org/2", "content": None},
    ]
}


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(RESULTS) as running:
        yield running


def searcher(server: Loopback, timeout: float = 5) -> TavilySearcher:
    return TavilySearcher("tvly-secret", base_url=server.url, timeout=timeout, longest_wait=0.01)


async def search(server: Loopback, way: str, **options: Any) -> list[Any]:
    made = searcher(server, **options)
    return made.search("ada", 5) if way == "search" else await made.asearch("ada", 5)


WAYS = pytest.mark.parametrize("way", ["search", "asearch"])


@WAYS
async def test_hits_have_title_url_and_snippet(server: Loopback, way: str) -> None:
    assert await search(server, way) == [
        ("Ada", "https://example.org/ada", "Ada wrote it."),
        ("", "https://example.org/2", ""),
    ]
    assert server.requests[0]["max_results"] == 5
    assert server.requests[0]["authorization"] == "Bearer tvly-secret"


@WAYS
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_can_heal_is_tried_again(server: Loopback, way: str, status: int) -> None:
    server.statuses = [status, status]
    assert len(await search(server, way)) == 2
    assert len(server.requests) == 3


@WAYS
@pytest.mark.parametrize(
    ("statuses", "problem", "requests"),
    [
        ([401], "key", 1),
        ([403], "request", 1),
        ([432], "request", 1),
        ([400], "request", 1),
        ([429] * 3, "quota", 3),
        ([500] * 3, "server", 3),
    ],
)
async def test_failures_say_what_is_wrong(
    server: Loopback, way: str, statuses: list[int], problem: str, requests: int
) -> None:
    server.statuses = list(statuses)
    with pytest.raises(SearchError) as caught:
        await search(server, way)
    assert caught.value.problem == problem
    assert len(server.requests) == requests
    assert "tvly-secret" not in str(caught.value)


@WAYS
async def test_no_answer_in_time(server: Loopback, way: str) -> None:
    server.seconds = 5
    with pytest.raises(SearchError) as caught:
        await search(server, way, timeout=0.05)
    assert caught.value.problem == "timeout"


@WAYS
async def test_a_reply_that_is_not_json(server: Loopback, way: str) -> None:
    server.body = b"<html>maintenance</html>"
    with pytest.raises(SearchError) as caught:
        await search(server, way)
    assert caught.value.problem == "server"


@WAYS
async def test_no_results_at_all(server: Loopback, way: str) -> None:
    server.body = {"results": None}
    assert await search(server, way) == []


def test_a_server_that_is_not_there() -> None:
    gone = TavilySearcher("tvly-x", base_url="http://127.0.0.1:9", timeout=1, longest_wait=0.01)
    with pytest.raises(SearchError) as caught:
        gone.search("ada", 5)
    assert caught.value.problem == "server"


def test_the_key_is_needed_and_not_shown() -> None:
    with pytest.raises(SearchError, match="set TAVILY_API_KEY"):
        TavilySearcher(" ")
    made = TavilySearcher("tvly-secret")
    assert isinstance(made, WebSearcher)
    assert "secret" not in repr(made)

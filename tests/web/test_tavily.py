"""Tavily's client against a server on loopback that answers as Tavily does."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.errors import SearchError
from crag.parts import Hit, WebSearcher
from crag.web import TavilySearcher
from tests.loopback import Loopback, serving
from tests.web.services import CUT_OFF, NO_JSON, NO_OBJECT, WAYS, dripping, failing, search

RESULTS = {
    "query": "ada",
    "results": [
        {
            "title": "Ada",
            "url": "https://example.org/ada",
            "content": "Ada <b>wrote</b> it.",
            "raw_content": "Ada Lovelace\n\nShe wrote it.",
            "score": 0.9,
        },
        {"title": "No address", "content": "cannot be cited"},
        {"title": None, "url": "https://example.org/2", "content": None, "raw_content": None},
        {"title": "Ada again", "url": "https://example.org/ada/?utm_source=x", "content": "same"},
    ],
}
ODD = [
    7,
    None,
    "a hit",
    ["a hit"],
    {},
    {"url": 7},
    {"url": None, "title": "t"},
    {"url": "javascript:alert(1)"},
    {"url": "https://example.org/odd", "title": 7, "content": {"a": 1}, "raw_content": [1]},
]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(RESULTS) as running:
        yield running


def searcher(server: Loopback, timeout: float = 5, **options: Any) -> TavilySearcher:
    quick: dict[str, Any] = {"timeout": timeout, "longest_wait": 0.01}
    return TavilySearcher("tvly-secret", base_url=server.url, **quick | options)


@WAYS
async def test_hits_have_title_url_snippet_and_text(server: Loopback, way: str) -> None:
    assert await search(searcher(server), way) == [
        Hit(
            "Ada", "https://example.org/ada", "Ada wrote it.", text="Ada Lovelace\n\nShe wrote it."
        ),
        Hit("", "https://example.org/2", ""),
    ]
    sent = server.requests[0]
    assert (sent["path"], sent["max_results"]) == ("/search", 5)
    assert sent["include_raw_content"] == "text"
    assert sent["authorization"] == "Bearer tvly-secret"


@WAYS
async def test_the_text_of_pages_need_not_be_asked_for(server: Loopback, way: str) -> None:
    await search(searcher(server, raw_content=False), way)
    assert "include_raw_content" not in server.requests[0]


@WAYS
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_can_heal_is_tried_again(server: Loopback, way: str, status: int) -> None:
    server.statuses = [status, status]
    assert len(await search(searcher(server), way)) == 2
    assert len(server.requests) == 3


@WAYS
@pytest.mark.parametrize(
    ("statuses", "problem", "requests"),
    [
        ([401], "key", 1),
        ([403], "request", 1),
        ([432], "request", 1),
        ([400], "request", 1),
        ([404], "request", 1),
        ([204], "server", 1),
        ([429] * 3, "quota", 3),
        ([500] * 3, "server", 3),
    ],
)
async def test_failures_say_what_is_wrong(
    server: Loopback, way: str, statuses: list[int], problem: str, requests: int
) -> None:
    server.statuses = list(statuses)
    error = await failing(searcher(server), way)
    assert error.problem == problem
    assert len(server.requests) == requests
    assert "tvly-secret" not in str(error)


@WAYS
@pytest.mark.parametrize(("asked", "requests"), [("0", 3), ("30", 1)])
async def test_retry_after_is_obeyed(server: Loopback, way: str, asked: str, requests: int) -> None:
    server.statuses, server.headers = [429] * 3, {429: {"Retry-After": asked}}
    error = await failing(searcher(server, longest_wait=2), way)
    assert len(server.requests) == requests
    assert f"asks to wait {asked} s" in str(error)


@WAYS
async def test_the_key_follows_no_redirect(server: Loopback, way: str) -> None:
    with serving(RESULTS) as elsewhere:
        server.statuses = [307]
        server.headers = {307: {"Location": f"{elsewhere.url}/search"}}
        error = await failing(searcher(server), way)
        assert (error.problem, len(server.requests)) == ("request", 1)
        assert elsewhere.requests == []


@WAYS
async def test_no_answer_in_time(server: Loopback, way: str) -> None:
    server.seconds = 5
    error = await failing(searcher(server, timeout=0.05), way)
    assert (error.problem, len(server.requests)) == ("timeout", 3)


@WAYS
async def test_a_reply_that_breaks_off(way: str) -> None:
    with dripping([CUT_OFF]) as url:
        made = TavilySearcher("tvly-x", base_url=url, timeout=5, longest_wait=0.01)
        error = await failing(made, way)
    assert error.problem == "server"
    assert "the connection failed (" in str(error)
    assert "try again later" in str(error)


@WAYS
@pytest.mark.parametrize("host", ["http://127.0.0.1:9", "http://nonexistent.invalid"])
async def test_a_server_that_is_not_there(way: str, host: str) -> None:
    gone = TavilySearcher("tvly-x", base_url=host, timeout=2, longest_wait=0.01)
    error = await failing(gone, way)
    assert error.problem == "server"
    assert f"{host} cannot be reached: check" in str(error)


@WAYS
@pytest.mark.parametrize("body", NO_JSON + NO_OBJECT)
async def test_a_reply_of_another_form(server: Loopback, way: str, body: bytes) -> None:
    server.body = body
    error = await failing(searcher(server), way)
    assert (error.problem, len(server.requests)) == ("server", 1)


@WAYS
@pytest.mark.parametrize("results", [7, "words", {"a": 1}, True])
async def test_results_that_are_no_list(server: Loopback, way: str, results: Any) -> None:
    server.body = {"results": results}
    assert (await failing(searcher(server), way)).problem == "server"


@WAYS
async def test_hits_of_another_form_are_left_out(server: Loopback, way: str) -> None:
    server.body = {"results": ODD}
    assert await search(searcher(server), way) == [Hit("", "https://example.org/odd", "")]


@WAYS
@pytest.mark.parametrize("body", [{"results": None}, {"results": []}, {}])
async def test_no_results_at_all(server: Loopback, way: str, body: Any) -> None:
    server.body = body
    assert await search(searcher(server), way) == []


@WAYS
async def test_a_long_query_is_cut_at_a_word(server: Loopback, way: str) -> None:
    made = searcher(server)
    await search(made, way, "engine " * 200)
    assert server.requests[0]["query"] == " ".join(["engine"] * 57)
    assert len(server.requests[0]["query"]) <= made.longest_query == 400


@WAYS
async def test_no_more_than_the_limit(server: Loopback, way: str) -> None:
    assert len(await search(searcher(server), way, limit=1)) == 1


@WAYS
async def test_an_empty_query_is_not_sent(server: Loopback, way: str) -> None:
    assert (await failing(searcher(server), way, " \n")).problem == "request"
    assert server.requests == []


def test_the_key_is_needed_and_not_shown() -> None:
    with pytest.raises(SearchError, match="set TAVILY_API_KEY"):
        TavilySearcher(" ")
    made = TavilySearcher("tvly-secret")
    assert isinstance(made, WebSearcher)
    assert repr(made) == "TavilySearcher('https://api.tavily.com')"


@pytest.mark.parametrize(
    "address", ["api.tavily.com", "ftp://x", "http://", "http://[", "http://a:b"]
)
def test_an_address_must_be_one(address: str) -> None:
    with pytest.raises(SearchError, match="TAVILY_BASE_URL must be an address"):
        TavilySearcher("tvly-x", base_url=address)

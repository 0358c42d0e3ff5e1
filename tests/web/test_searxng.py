"""SearXNG's searcher against a server on loopback that answers as SearXNG does."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.errors import SearchError
from crag.parts import Hit, WebSearcher
from crag.web import SearxngSearcher
from tests.loopback import Loopback, serving
from tests.web.services import CUT_OFF, NO_JSON, NO_OBJECT, WAYS, dripping, failing, search

ADA = {
    "title": "Ada <em>Lovelace</em>",
    "url": "https://example.org/ada",
    "content": "Ada<br>wrote &quot;notes&quot; on a List<int>.",
    "engine": "brave",
    "score": 1.0,
}
FOUND: dict[str, Any] = {
    "query": "ada",
    "number_of_results": 0,
    "results": [ADA, ADA | {"url": "https://example.org/b"}, ADA],
    "answers": [],
    "unresponsive_engines": [["qwant", "timeout"]],
}
HIT = Hit("Ada Lovelace", "https://example.org/ada", 'Ada wrote "notes" on a List<int>.')
ODD = [
    7,
    None,
    ["hit"],
    {},
    {"url": None},
    {"url": "/relative"},
    {"url": "https://example.org/odd", "title": 7, "content": None},
    ADA,
    ADA | {"url": "HTTPS://EXAMPLE.org/ada/#top"},
]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(FOUND) as running:
        yield running


def searcher(server: Loopback, **options: Any) -> SearxngSearcher:
    quick: dict[str, Any] = {"timeout": 5, "longest_wait": 0.01}
    return SearxngSearcher(server.url, **quick | options)


@WAYS
async def test_hits_are_plain_text(server: Loopback, way: str) -> None:
    assert await search(searcher(server), way) == [
        HIT,
        HIT._replace(url="https://example.org/b"),
    ]
    sent = server.requests[0]
    assert (sent["path"], sent["q"], sent["format"]) == ("/search", "ada", "json")


@WAYS
async def test_no_more_than_the_limit(server: Loopback, way: str) -> None:
    assert await search(searcher(server), way, limit=1) == [HIT]


@WAYS
async def test_json_that_is_not_allowed_is_explained(server: Loopback, way: str) -> None:
    server.statuses = [403]
    error = await failing(searcher(server), way)
    assert (error.problem, len(server.requests)) == ("request", 1)
    assert "formats: [html, json]" in str(error)
    assert "settings.yml" in str(error)


@WAYS
@pytest.mark.parametrize("status", [429, 502])
async def test_what_can_heal_is_tried_again(server: Loopback, way: str, status: int) -> None:
    server.statuses = [status, status]
    assert len(await search(searcher(server), way)) == 2
    assert len(server.requests) == 3


@WAYS
@pytest.mark.parametrize(
    ("status", "problem", "requests"),
    [(400, "request", 1), (401, "key", 1), (429, "quota", 3), (500, "server", 3)],
)
async def test_failures_say_what_is_wrong(
    server: Loopback, way: str, status: int, problem: str, requests: int
) -> None:
    server.statuses = [status] * 3
    error = await failing(searcher(server), way)
    assert (error.problem, len(server.requests)) == (problem, requests)


@WAYS
@pytest.mark.parametrize(("asked", "requests"), [("0", 3), ("30", 1)])
async def test_retry_after_is_obeyed(server: Loopback, way: str, asked: str, requests: int) -> None:
    server.statuses, server.headers = [429] * 3, {429: {"Retry-After": asked}}
    error = await failing(searcher(server, longest_wait=2), way)
    assert len(server.requests) == requests
    assert f"asks to wait {asked} s" in str(error)


@WAYS
@pytest.mark.parametrize("target", ["https://search.example.org/search", "http://[", "/other"])
async def test_redirects_are_not_followed(server: Loopback, way: str, target: str) -> None:
    server.statuses, server.headers = [301], {301: {"Location": target}}
    error = await failing(searcher(server), way)
    assert error.problem in {"request", "server"}
    assert len(server.requests) == 1


@WAYS
async def test_no_answer_in_time(server: Loopback, way: str) -> None:
    server.seconds = 5
    error = await failing(searcher(server, timeout=0.05), way)
    assert (error.problem, len(server.requests)) == ("timeout", 3)


@WAYS
async def test_a_reply_that_comes_too_slowly(way: str) -> None:
    """Each part comes in time, and the whole does not."""
    with dripping([CUT_OFF, *[b" "] * 8], seconds=0.02) as url:
        error = await failing(SearxngSearcher(url, timeout=0.07, longest_wait=0.01), way)
    assert error.problem == "timeout"
    assert "no answer in time: try again later" in str(error)


@WAYS
async def test_a_reply_that_breaks_off(way: str) -> None:
    with dripping([CUT_OFF]) as url:
        error = await failing(SearxngSearcher(url, timeout=5, longest_wait=0.01), way)
    assert error.problem == "server"
    assert "the connection failed (RemoteProtocolError): try again later" in str(error)


@WAYS
@pytest.mark.parametrize("host", ["http://127.0.0.1:9", "http://nonexistent.invalid"])
async def test_a_server_that_is_not_there(way: str, host: str) -> None:
    gone = SearxngSearcher(host, timeout=2, longest_wait=0.01)
    error = await failing(gone, way)
    assert error.problem == "server"
    assert f"{host}/search cannot be reached: check" in str(error)


@WAYS
async def test_a_password_in_the_address_is_sent_and_not_shown(server: Loopback, way: str) -> None:
    made = SearxngSearcher(server.url.replace("//", "//ada:secret@"), longest_wait=0.01)
    server.statuses = [401]
    error = await failing(made, way)
    assert server.requests[0]["authorization"] == "Basic YWRhOnNlY3JldA=="
    assert "secret" not in str(error) + repr(made)
    gone = SearxngSearcher("http://ada:secret@127.0.0.1:9", longest_wait=0.01)
    assert "secret" not in str(await failing(gone, way))


@WAYS
@pytest.mark.parametrize("body", [*NO_JSON, *NO_OBJECT, b"{}"])
async def test_a_reply_that_cannot_be_read(server: Loopback, way: str, body: bytes) -> None:
    server.body = body
    error = await failing(searcher(server), way)
    assert (error.problem, len(server.requests)) == ("server", 1)


@WAYS
@pytest.mark.parametrize("results", [7, "words", {"a": 1}, True])
async def test_results_that_are_no_list(server: Loopback, way: str, results: Any) -> None:
    server.body = {"results": results}
    assert (await failing(searcher(server), way)).problem == "server"


@WAYS
async def test_an_endless_reply_is_cut_off(server: Loopback, way: str) -> None:
    server.body = b" " * 5_000_001
    assert "too large" in str(await failing(searcher(server), way))


@WAYS
async def test_hits_of_another_form_do_no_harm(server: Loopback, way: str) -> None:
    server.body = {"results": ODD}
    assert await search(searcher(server), way) == [
        Hit("", "https://example.org/odd", ""),
        HIT,
    ]


@WAYS
@pytest.mark.parametrize("silent", [None, [], 7])
async def test_no_results_at_all(server: Loopback, way: str, silent: Any) -> None:
    server.body = {"results": [], "unresponsive_engines": silent}
    assert await search(searcher(server), way) == []


@WAYS
@pytest.mark.parametrize(
    ("silent", "words"),
    [([["brave", "CAPTCHA"], ["qwant", "timeout"]], "brave: CAPTCHA, qwant: timeout"),
     (["brave", 7], "brave")],
)  # fmt: skip
async def test_engines_that_all_fail_are_no_empty_result(
    server: Loopback, way: str, silent: Any, words: str
) -> None:
    server.body = {"results": [], "unresponsive_engines": silent}
    error = await failing(searcher(server), way)
    assert (error.problem, len(server.requests)) == ("server", 1)
    assert f"no engine of the server answered: {words}" in str(error)


@WAYS
async def test_a_long_query_is_cut_at_a_word(server: Loopback, way: str) -> None:
    made = searcher(server)
    await search(made, way, "engine " * 200)
    assert len(server.requests[0]["q"]) <= made.longest_query
    assert server.requests[0]["q"].endswith("engine")


@pytest.mark.parametrize("address", ["", "localhost:8888", "ftp://x", "http://[", "http://a:b"])
def test_an_address_must_be_one(address: str) -> None:
    with pytest.raises(SearchError, match="SEARXNG_URL must be an address"):
        SearxngSearcher(address)


@pytest.mark.parametrize("address", ["http://h/sx", "http://h/sx/", "http://h/sx/search"])
def test_the_address_may_have_a_path(address: str) -> None:
    made = SearxngSearcher(address)
    assert isinstance(made, WebSearcher)
    assert repr(made) == "SearxngSearcher('http://h/sx/search')"

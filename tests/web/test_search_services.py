"""One contract for the searchers of all services: what each does with whatever a service does."""

from typing import Any

import pytest

from crag.errors import SearchError
from crag.parts import Hit, WebSearcher
from tests.loopback import serving
from tests.web.engines import ENGINES, KEY, searching
from tests.web.services import CUT_OFF, dripping, failing, search

FOUND = [
    Hit("Ada", "https://example.org/ada", "Ada wrote it."),
    Hit("Babbage", "https://example.org/babbage", "He did not finish it."),
]
NO_OBJECT = [
    b"<html>maintenance</html>", b"", b'{"results": [', b"\xff\xfe\x00", b"[" * 100_000,
    b"[]", b"null", b"7", b'"words"', b"true", b"[1]",
]  # fmt: skip
ODD = [
    7, None, "a hit", ["a hit"], {}, {"url": None, "fullurl": 7}, {"url": "/relative"},
    {"url": "javascript:alert(1)", "fullurl": "javascript:alert(1)", "index": "first"},
    {"url": "https://example.org/odd", "fullurl": "https://example.org/odd", "title": 7,
     "content": {"a": 1}, "raw_content": [1], "extract": [1], "index": None},
]  # fmt: skip
engine = pytest.mark.parametrize("engine", ENGINES)


def listing(engine: str, hits: object) -> dict[str, Any]:
    """Return a reply whose list of hits is something else."""
    return {"query": {"pages": hits}} if engine == "wikipedia" else {"results": hits}


@engine
async def test_each_hit_is_found_once_in_order_and_in_both_ways(engine: str) -> None:
    again = FOUND[0]._replace(url="HTTPS://EXAMPLE.org/ada/?utm_source=x#top")
    with searching(engine, [*FOUND, again]) as (server, searcher):
        assert isinstance(searcher, WebSearcher)
        assert await search(searcher) == FOUND
        assert await search(searcher, limit=1) == FOUND[:1]
        assert searcher.search("ada", 5)[:2] == FOUND
        assert all(request[ENGINES[engine].query] == "ada" for request in server.requests)


@engine
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_can_heal_is_tried_again(engine: str, status: int) -> None:
    with searching(engine, FOUND) as (server, searcher):
        server.statuses = [status, status]
        assert await search(searcher) == FOUND
        assert len(server.requests) == 3


@engine
@pytest.mark.parametrize(
    ("status", "problem", "requests"),
    [
        (400, "request", 1),
        (401, "key", 1),
        (403, "request", 1),
        (404, "request", 1),
        (429, "quota", 3),
        (500, "server", 3),
    ],
)
async def test_failures_say_what_is_wrong(
    engine: str, status: int, problem: str, requests: int
) -> None:
    with searching(engine, FOUND) as (server, searcher):
        server.statuses = [status] * 3
        error = await failing(searcher)
        assert (error.problem, len(server.requests)) == (problem, requests)
    assert KEY not in str(error)


@engine
@pytest.mark.parametrize(("asked", "requests"), [("0", 3), ("30", 1)])
async def test_retry_after_is_obeyed(engine: str, asked: str, requests: int) -> None:
    with searching(engine, FOUND, longest_wait=2) as (server, searcher):
        server.statuses, server.headers = [429] * 3, {429: {"Retry-After": asked}}
        assert f"asks to wait {asked} s" in str(await failing(searcher))
        assert len(server.requests) == requests


@engine
@pytest.mark.parametrize("target", ["elsewhere", "http://[", "/other"])
async def test_no_redirect_is_followed_with_or_without_a_key(engine: str, target: str) -> None:
    with searching(engine, FOUND) as (server, searcher), serving({}) as elsewhere:
        to = f"{elsewhere.url}/search" if target == "elsewhere" else target
        server.statuses, server.headers = [307], {307: {"Location": to}}
        assert (await failing(searcher)).problem in {"request", "server"}
        assert (len(server.requests), elsewhere.requests) == (1, [])


@engine
async def test_no_answer_in_time(engine: str) -> None:
    with searching(engine, FOUND, timeout=0.3) as (server, searcher):
        server.seconds = 5
        assert (await failing(searcher)).problem == "timeout"
        assert len(server.requests) == 3


@engine
async def test_a_reply_that_breaks_off(engine: str) -> None:
    with dripping([CUT_OFF]) as url:
        error = await failing(ENGINES[engine].searcher(url, timeout=5, longest_wait=0.01))
    assert error.problem == "server"
    assert "the connection failed (" in str(error)
    assert "try again later" in str(error)


@engine
@pytest.mark.parametrize("host", ["http://127.0.0.1:9", "http://nonexistent.invalid"])
async def test_a_server_that_is_not_there(engine: str, host: str) -> None:
    error = await failing(ENGINES[engine].searcher(host, timeout=2, longest_wait=0.01))
    assert error.problem == "server"
    assert " cannot be reached: check" in str(error)
    assert host in str(error)


@engine
@pytest.mark.parametrize("body", NO_OBJECT)
async def test_a_reply_that_is_no_object(engine: str, body: bytes) -> None:
    with searching(engine, FOUND) as (server, searcher):
        server.body = body
        assert (await failing(searcher)).problem == "server"
        assert len(server.requests) == 1


@engine
@pytest.mark.parametrize("hits", [7, "words", {"a": 1}, True])
async def test_hits_that_are_no_list(engine: str, hits: object) -> None:
    with searching(engine, FOUND) as (server, searcher):
        server.body = listing(engine, hits)
        assert (await failing(searcher)).problem == "server"


@engine
async def test_hits_of_another_form_are_left_out(engine: str) -> None:
    with searching(engine, FOUND) as (server, searcher):
        server.body = listing(engine, ODD)
        assert await search(searcher, limit=len(ODD)) == [Hit("", "https://example.org/odd", "")]


@engine
async def test_no_hits_at_all(engine: str) -> None:
    with searching(engine, []) as (server, searcher):
        assert await search(searcher) == []
        server.body = listing(engine, [])
        assert await search(searcher) == []


@engine
async def test_a_long_query_is_cut_at_a_word_and_an_empty_one_not_sent(engine: str) -> None:
    with searching(engine, FOUND) as (server, searcher):
        await search(searcher, "engine " * 200)
        (sent,) = (request[ENGINES[engine].query] for request in server.requests)
        assert (await failing(searcher, " \n")).problem == "request"
        assert len(server.requests) == 1
    longest: int = searcher.longest_query  # type: ignore[attr-defined]
    assert sent == " ".join(["engine"] * ((longest + 1) // 7))


@engine
@pytest.mark.parametrize("address", ["localhost:8888", "ftp://x", "http://", "http://a:b"])
def test_an_address_must_be_one(engine: str, address: str) -> None:
    with pytest.raises(SearchError, match=r"_URL must be an address"):
        ENGINES[engine].searcher(address)

"""One contract for the searchers of all services, and what differs between them."""

from typing import Any

import pytest

from crag.parts import Hit, WebSearcher
from crag.web import SearxngSearcher, WikipediaSearcher
from tests.loopback import serving
from tests.web.engines import ENGINES, KEY, failing, search, searching
from tests.web.site import listening

ADA = Hit("Ada", "https://example.org/ada", "Ada wrote it.")
FOUND = [ADA, Hit("Babbage", "https://example.org/babbage", "He did not finish it.")]
OTHER_FORMS = [
    b"<html>maintenance</html>", b"", b'{"results": [', b"\xff\xfe\x00", b"[" * 100_000,
    b"[]", b"null", b"7", b'"words"', b"true", b"[1]", b'{"results": 7, "query": {"pages": 7}}',
    b'{"results": [7], "query": {"pages": [7]}}', b'{"results": "words", "query": "words"}',
    b'{"results": [{"title": 7}], "query": {"pages": [{"title": 7, "index": 1}]}}',
]  # fmt: skip
CUT_OFF = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"results'
)
engine = pytest.mark.parametrize("engine", ENGINES)


@engine
async def test_hits_are_found_in_order_and_in_both_ways(engine: str) -> None:
    odd = Hit("Ada\n ", "https://example.org/ada", "  Ada\twrote\nit.")
    with searching(engine, [odd, *FOUND[1:]]) as (server, searcher):
        assert isinstance(searcher, WebSearcher)
        assert await search(searcher) == FOUND == searcher.search("ada", 5)
        assert await search(searcher, limit=1) == FOUND[:1]
        assert {request[ENGINES[engine].query] for request in server.requests} == {"ada"}
        assert (
            "corrective-rag/" in server.requests[0]["headers"]["user-agent"] or engine == "tavily"
        )


@engine
@pytest.mark.parametrize(
    ("status", "problem", "requests"),
    [
        (400, "request", 1), (401, "key", 1), (403, "request", 1), (404, "request", 1),
        (429, "quota", 3), (432, "request", 1), (500, "server", 3), (503, "server", 3),
    ],
)  # fmt: skip
async def test_failures_say_what_is_wrong_and_what_can_heal_is_tried_again(
    engine: str, status: int, problem: str, requests: int
) -> None:
    with searching(engine, FOUND) as (server, searcher):
        server.statuses = [status] * 3
        error = await failing(searcher)
        assert (error.problem, len(server.requests)) == (problem, requests)
        server.statuses = [status] * (requests - 1)
        assert await search(searcher) == FOUND
    assert KEY not in str(error)
    expected = {"searxng": "formats: [html, json]", "wikipedia": "CRAG_CONTACT"}
    assert status != 403 or expected.get(engine, "HTTP 403") in str(error)


@engine
@pytest.mark.parametrize(("asked", "requests"), [("0", 3), ("30", 1)])
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_obeyed(engine: str, asked: str, requests: int, status: int) -> None:
    with searching(engine, FOUND, longest_wait=2) as (server, searcher):
        server.statuses, server.headers = [status] * 3, {status: {"Retry-After": asked}}
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
async def test_a_server_that_is_not_there_or_breaks_off(engine: str) -> None:
    gone = ["http://127.0.0.1:9", "http://nonexistent.invalid"]
    with listening([CUT_OFF] * 3) as (port, _):
        for address in (f"http://127.0.0.1:{port}", *gone):
            error = await failing(ENGINES[engine].searcher(address, timeout=5, longest_wait=0.01))
            assert error.problem == "server"
            assert f"{address}" in str(error)
            assert " cannot be reached (" in str(error)


@engine
@pytest.mark.parametrize("body", OTHER_FORMS)
async def test_a_reply_of_another_form(engine: str, body: bytes) -> None:
    with searching(engine, FOUND) as (server, searcher):
        server.body = body
        assert (await failing(searcher)).problem == "server"
        assert len(server.requests) == 1


async def test_tavily_brings_the_text_of_pages_and_gets_the_key(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login ada password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    hit = ADA._replace(text="Ada Lovelace\n\nShe wrote it.")
    with searching("tavily", [hit]) as (server, searcher):
        assert await search(searcher, limit=50) == [hit]
    (sent,) = server.requests
    assert (sent["path"], sent["max_results"]) == ("/search", 20)
    assert sent["include_raw_content"] == "text"
    assert sent["authorization"] == f"Bearer {KEY}"


async def test_searxng_s_engines_that_all_fail_are_no_empty_result() -> None:
    silent = [["brave", "CAPTCHA"], ["qwant", "timeout"]]
    with searching("searxng", []) as (server, searcher):
        server.body = {"results": [], "unresponsive_engines": silent}
        error = await failing(searcher)
    assert (error.problem, len(server.requests)) == ("server", 1)
    assert "no engine of the server answered: brave: CAPTCHA, qwant: timeout" in str(error)


async def test_a_password_in_the_address_is_sent_and_not_shown() -> None:
    with searching("searxng", FOUND) as (server, _):
        made = SearxngSearcher(server.url.replace("//", "//ada:secret@"), longest_wait=0.01)
        server.statuses = [401]
        error = await failing(made)
    assert server.requests[0]["authorization"] == "Basic YWRhOnNlY3JldA=="
    gone = await failing(SearxngSearcher("http://ada:secret@127.0.0.1:9", longest_wait=0.01))
    assert "secret" not in str(error) + repr(made) + str(gone)


async def test_wikipedia_s_articles_come_by_rank_with_introductions() -> None:
    articles = [
        {"title": "Babbage", "index": 2, "fullurl": "https://en.wikipedia.org/wiki/Babbage",
         "extract": "He did not finish."},
        {"title": "Ada", "index": 1, "fullurl": "https://en.wikipedia.org/wiki/Ada",
         "extract": "Ada was.\nShe wrote."},
    ]  # fmt: skip
    with serving({"query": {"pages": articles}}) as server:
        made = WikipediaSearcher(server.url, contact="ada@example.org")
        assert await search(made, limit=50) == [
            Hit("Ada", "https://en.wikipedia.org/wiki/Ada", "Ada was. She wrote."),
            Hit("Babbage", "https://en.wikipedia.org/wiki/Babbage", "He did not finish."),
        ]
        (sent,) = server.requests
    assert (sent["path"], sent["generator"], sent["gsrlimit"]) == ("/w/api.php", "search", "50")
    assert sent["exlimit"] == "20"
    assert "(Corrective RAG; ada@example.org) httpx/" in sent["headers"]["user-agent"]


async def test_wikipedia_s_errors_come_with_the_status_of_a_success() -> None:
    with searching("wikipedia", FOUND) as (server, searcher):
        server.body = {"error": {"code": "ratelimited", "info": "The words of the wiki"}}
        assert "The words of the wiki" in str(await failing(searcher))
        assert len(server.requests) == 3

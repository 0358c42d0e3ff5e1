"""Wikipedia's searcher, where it differs from those of `test_search_services.py`."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.errors import SearchError
from crag.parts import Hit
from crag.web import WikipediaSearcher
from tests.loopback import Loopback, serving
from tests.web.services import failing, search

ADA = {
    "pageid": 974,
    "ns": 0,
    "title": "Ada Lovelace",
    "index": 1,
    "snippet": 'wrote about <span class="searchmatch">Ada</span>',
    "fullurl": "https://en.wikipedia.org/wiki/Ada_Lovelace",
    "extract": "Ada Lovelace was a mathematician.\nShe wrote the first program.",
}
BABBAGE = {
    "pageid": 5698,
    "title": "Charles Babbage",
    "index": 2,
    "snippet": 'With <span class="searchmatch">Ada</span> &amp; others he built &lt;engines&gt;',
    "fullurl": "https://en.wikipedia.org/wiki/Charles_Babbage",
}
FOUND = {"batchcomplete": True, "query": {"pages": [BABBAGE, ADA]}}
HITS = [
    Hit(
        "Ada Lovelace",
        "https://en.wikipedia.org/wiki/Ada_Lovelace",
        "Ada Lovelace was a mathematician. She wrote the first program.",
    ),
    Hit(
        "Charles Babbage",
        "https://en.wikipedia.org/wiki/Charles_Babbage",
        "With Ada & others he built <engines>",
    ),
]
ODD = [
    7,
    None,
    ["page"],
    {"title": "No address", "index": 3},
    {"fullurl": 7, "index": "first"},
    {"fullurl": "https://example.org/odd", "title": 7, "extract": [1], "index": None},
    ADA | {"fullurl": "https://en.m.wikipedia.org/wiki/Ada_Lovelace#Life", "index": 9},
    ADA,
]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(FOUND) as running:
        yield running


def searcher(server: Loopback, **options: Any) -> WikipediaSearcher:
    quick: dict[str, Any] = {"timeout": 5, "longest_wait": 0.01}
    return WikipediaSearcher(base_url=server.url, **quick | options)


async def test_hits_are_the_articles_by_rank(server: Loopback) -> None:
    assert await search(searcher(server)) == HITS
    sent = server.requests[0]
    assert sent["path"] == "/w/api.php"
    assert (sent["action"], sent["generator"], sent["format"]) == ("query", "search", "json")
    assert (sent["gsrsearch"], sent["gsrlimit"]) == ("ada", "5")


async def test_many_extracts_are_asked_for_as_the_interface_allows(server: Loopback) -> None:
    await search(searcher(server), limit=50)
    sent = server.requests[0]
    assert (sent["gsrlimit"], sent["exlimit"], sent["exintro"]) == ("50", "20", "1")


async def test_the_client_says_who_it_is(server: Loopback) -> None:
    await search(searcher(server, contact="ada@example.org\r\nX: (ü)"))
    agent = server.requests[0]["headers"]["user-agent"]
    assert agent.startswith("corrective-rag/")
    assert "(Corrective RAG; ada@example.orgX: ) httpx/" in agent
    assert server.requests[0]["authorization"] is None


@pytest.mark.parametrize(
    ("status", "problem", "requests", "words"),
    [
        (401, "key", 1, "key or password"),
        (403, "request", 1, "CRAG_CONTACT"),
        (408, "timeout", 3, "in time"),
        (429, "quota", 3, "too many"),
        (503, "server", 3, "HTTP 503"),
    ],
)
async def test_failures_say_what_is_wrong(
    server: Loopback, status: int, problem: str, requests: int, words: str
) -> None:
    server.statuses = [status] * 3
    error = await failing(searcher(server))
    assert (error.problem, len(server.requests)) == (problem, requests)
    assert words in str(error)


async def test_retry_after_of_a_busy_wiki_is_obeyed(server: Loopback) -> None:
    server.statuses, server.headers = [503] * 3, {503: {"Retry-After": "30"}}
    assert "asks to wait 30 s" in str(await failing(searcher(server, longest_wait=2)))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("code", "problem", "requests"),
    [
        ("ratelimited", "quota", 3),
        ("internal_api_error_DBQueryError", "server", 3),
        ("cirrussearch-too-busy-error", "server", 3),
        ("missingparam", "request", 1),
        (None, "request", 1),
    ],
)
async def test_errors_come_with_the_status_of_a_success(
    server: Loopback, code: str | None, problem: str, requests: int
) -> None:
    server.body = {"error": {"code": code, "info": "The words of <b>the wiki</b>"}}
    error = await failing(searcher(server))
    assert (error.problem, len(server.requests)) == (problem, requests)
    assert "The words of the wiki" in str(error)


@pytest.mark.parametrize("query", [7, "words", [1], {"a": 1}, {"pages": {"1": ADA}}])
async def test_a_reply_of_another_form(server: Loopback, query: Any) -> None:
    server.body = {"query": query}
    assert (await failing(searcher(server))).problem == "server"


async def test_pages_of_another_form_do_no_harm(server: Loopback) -> None:
    server.body = {"query": {"pages": ODD}}
    assert await search(searcher(server)) == [
        HITS[0],
        Hit("", "https://example.org/odd", ""),
    ]


@pytest.mark.parametrize(
    "body", [{"batchcomplete": True}, {"query": None}, {"query": {"pages": []}}]
)
async def test_no_results_at_all(server: Loopback, body: Any) -> None:
    server.body = body
    assert await search(searcher(server)) == []


def test_the_language_chooses_the_wiki() -> None:
    made = WikipediaSearcher(language="zh-min-nan")
    assert repr(made) == "WikipediaSearcher('https://zh-min-nan.wikipedia.org/w/api.php')"
    own = WikipediaSearcher(base_url="https://wiki.example.org/mediawiki/api.php")
    assert repr(own) == "WikipediaSearcher('https://wiki.example.org/mediawiki/api.php')"


@pytest.mark.parametrize("language", ["", "en.evil.example/", "EN", "en-", "../"])
def test_a_language_is_a_code(language: str) -> None:
    with pytest.raises(SearchError, match="CRAG_WIKIPEDIA_LANGUAGE"):
        WikipediaSearcher(language=language)

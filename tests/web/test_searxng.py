"""SearXNG's searcher, where it differs from those of `test_search_services.py`."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag.parts import Hit
from crag.web import SearxngSearcher
from tests.loopback import Loopback, serving
from tests.web.services import CUT_OFF, dripping, failing, search

ADA = {
    "title": "Ada <em>Lovelace</em>",
    "url": "https://example.org/ada",
    "content": "Ada<br>wrote &quot;notes&quot; on a List<int>.",
    "engine": "brave",
    "score": 1.0,
}
HIT = Hit("Ada Lovelace", "https://example.org/ada", 'Ada wrote "notes" on a List<int>.')


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving({"results": [ADA], "unresponsive_engines": [["qwant", "timeout"]]}) as running:
        yield running


def searcher(server: Loopback, **options: Any) -> SearxngSearcher:
    return SearxngSearcher(server.url, **{"timeout": 5, "longest_wait": 0.01} | options)


async def test_hits_are_plain_text(server: Loopback) -> None:
    assert await search(searcher(server)) == [HIT]
    sent = server.requests[0]
    assert (sent["path"], sent["q"], sent["format"]) == ("/search", "ada", "json")


async def test_json_that_is_not_allowed_is_explained(server: Loopback) -> None:
    server.statuses = [403]
    error = str(await failing(searcher(server)))
    assert "formats: [html, json]" in error
    assert "settings.yml" in error


async def test_a_reply_that_comes_too_slowly() -> None:
    """Each part comes in time, and the whole does not."""
    with dripping([CUT_OFF, *[b" "] * 8], seconds=0.02) as url:
        error = await failing(SearxngSearcher(url, timeout=0.07, longest_wait=0.01))
    assert error.problem == "timeout"
    assert "no answer in time: try again later" in str(error)


async def test_a_password_in_the_address_is_sent_and_not_shown(server: Loopback) -> None:
    made = SearxngSearcher(server.url.replace("//", "//ada:secret@"), longest_wait=0.01)
    server.statuses = [401]
    error = await failing(made)
    assert server.requests[0]["authorization"] == "Basic YWRhOnNlY3JldA=="
    assert "secret" not in str(error) + repr(made)
    gone = SearxngSearcher("http://ada:secret@127.0.0.1:9", longest_wait=0.01)
    assert "secret" not in str(await failing(gone))


async def test_a_reply_without_results_is_none(server: Loopback) -> None:
    server.body = {}
    assert (await failing(searcher(server))).problem == "server"


async def test_an_endless_reply_is_cut_off(server: Loopback) -> None:
    server.body = b" " * 5_000_001
    assert "too large" in str(await failing(searcher(server)))


@pytest.mark.parametrize(
    ("silent", "words"),
    [([["brave", "CAPTCHA"], ["qwant", "timeout"]], "brave: CAPTCHA, qwant: timeout"),
     (["brave", 7], "brave")],
)  # fmt: skip
async def test_engines_that_all_fail_are_no_empty_result(
    server: Loopback, silent: Any, words: str
) -> None:
    server.body = {"results": [], "unresponsive_engines": silent}
    error = await failing(searcher(server))
    assert (error.problem, len(server.requests)) == ("server", 1)
    assert f"no engine of the server answered: {words}" in str(error)
    server.body = {"results": [], "unresponsive_engines": 7}
    assert await search(searcher(server)) == []


@pytest.mark.parametrize("address", ["http://h/sx", "http://h/sx/", "http://h/sx/search"])
def test_the_address_may_have_a_path(address: str) -> None:
    assert repr(SearxngSearcher(address)) == "SearxngSearcher('http://h/sx/search')"

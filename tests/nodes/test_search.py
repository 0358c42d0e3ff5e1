"""Hits, in the order in which they are read."""

import time
from typing import Any

import pytest

from crag.errors import SearchError
from crag.nodes.search import Search
from crag.parts import Hit
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeSearcher

STATE = State(question="Who wrote the first program?", query="first program, author")
SPAM = Hit("Shop", "https://example.com/shop", "Buy programs here for less money today.")
MOBILE = Hit("Ada", "https://en.m.wikipedia.org/wiki/Ada#Life", "The same page on a telephone.")


def urls(update: Any) -> list[str]:
    return [hit["url"] for hit in update["pages"]]


def test_the_query_is_searched_for_once(hits: list[Hit]) -> None:
    searcher = FakeSearcher([*hits, SPAM])
    update = Search(searcher).run(STATE, Settings())
    assert searcher.queries == [STATE["query"]]
    assert update["usage"]["searches"] == 1
    assert update["usage"]["web_milliseconds"] < 1000
    assert update["events"] == []
    assert update["pages"][0]["snippet"] == hits[1].snippet


def test_a_page_of_wikipedia_at_rank_seven_comes_first() -> None:
    others = [Hit(f"Page {n}", f"https://example.org/{n}", "Text.") for n in range(6)]
    wiki = Hit("Ada", "https://en.wikipedia.org/wiki/Ada", "Ada Lovelace.")
    searcher = FakeSearcher([*others, wiki, *others])
    found = urls(Search(searcher).run(STATE, Settings(web_results=5)))
    assert found == [wiki.url, *(hit.url for hit in others[:4])]
    assert urls(Search(searcher).run(STATE, Settings(web_results=5, wikipedia="off"))) == [
        hit.url for hit in others[:5]
    ]


@pytest.mark.parametrize(
    ("wikipedia", "results", "asked"),
    [("prefer", 5, 10), ("prefer", 15, 20), ("prefer", 30, 30), ("off", 5, 5)],
)
def test_how_many_hits_are_asked_for(wikipedia: Any, results: int, asked: int) -> None:
    limits: list[int] = []

    class Limited(FakeSearcher):
        def search(self, query: str, limit: int) -> list[Hit]:
            limits.append(limit)
            return super().search(query, limit)

    Search(Limited([SPAM])).run(STATE, Settings(wikipedia=wikipedia, web_results=results))
    assert limits == [asked]


def test_a_page_is_found_once(hits: list[Hit]) -> None:
    update = Search(FakeSearcher([hits[1], MOBILE, hits[1], SPAM])).run(STATE, Settings())
    assert urls(update) == [hits[1].url, SPAM.url]


def test_a_hit_without_an_address_cannot_be_cited() -> None:
    found = [Hit("No", "", "text"), Hit("Odd", "javascript:alert(1)", "text"), SPAM]
    assert urls(Search(FakeSearcher(found)).run(STATE, Settings())) == [SPAM.url]


@pytest.mark.parametrize(
    ("searcher", "kind"),
    [
        (None, "search_unavailable"),
        (FakeSearcher([]), "search_empty"),
        (FakeSearcher([Hit("a", "", "b")]), "search_empty"),
        (FakeSearcher(error=TimeoutError("20 s")), "search_failed"),
        (FakeSearcher(error=SearchError("Tavily", "quota", "used up")), "search_failed"),
        (FakeSearcher(error=SearchError("Tavily", "key", "not valid")), "search_unavailable"),
    ],
)
def test_a_search_without_result_is_an_event(searcher: Any, kind: str) -> None:
    update = Search(searcher).run(STATE, Settings())
    assert update["pages"] == []
    assert [entry["kind"] for entry in update["events"]] == [kind]
    assert update["events"][0]["fallback"] == "continue without web knowledge"


class Sleeper(FakeSearcher):
    """Takes far too long."""

    def search(self, query: str, limit: int) -> list[Hit]:
        time.sleep(0.6)
        return super().search(query, limit)


def test_a_search_beyond_the_budget_of_seconds_is_given_up() -> None:
    node, settings = Search(Sleeper([SPAM])), Settings(max_web_seconds=0.05)
    start = time.monotonic()
    update = node.run(STATE, settings)
    assert time.monotonic() - start < 0.5
    assert update["pages"] == []
    (entry,) = update["events"]
    assert (entry["kind"], entry["detail"]) == (
        "search_failed",
        "TimeoutError: no answer within 0.05 seconds",
    )

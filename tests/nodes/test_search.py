"""External knowledge from hits."""

from typing import Any

import pytest

from crag.errors import SearchError
from crag.nodes.search import Search
from crag.parts import Hit
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeEvaluator, FakeSearcher

STATE = State(question="Who wrote the first program?", query="first program, author")
SPAM = Hit("Shop", "https://example.com/shop", "Buy programs here for less money today.")


def test_hits_become_strips_scored_against_the_question(hits: list[Hit]) -> None:
    evaluator = FakeEvaluator({"Ada": 0.8})
    update = Search(FakeSearcher([*hits, SPAM]), evaluator).run(STATE, Settings())
    assert [strip["kept"] for strip in update["external"]] == [True, True, False]
    assert evaluator.calls[0][0] == STATE["question"]
    assert update["usage"] == {"evaluator_calls": 1, "evaluated_texts": 3, "searches": 1}


def test_wikipedia_comes_first_unless_told_otherwise(hits: list[Hit]) -> None:
    node = Search(FakeSearcher(hits), FakeEvaluator())
    first = node.run(STATE, Settings())["external"][0]["source"]["url"]
    assert "wikipedia.org" in first
    first = node.run(STATE, Settings(wikipedia_first=False))["external"][0]["source"]["url"]
    assert "wikipedia.org" not in first


def test_a_hit_without_snippet_gives_its_title_and_an_empty_one_nothing() -> None:
    found = [Hit("A title that says it all", "https://a.org", " "), Hit("", "https://b.org", "")]
    external = Search(FakeSearcher(found), FakeEvaluator()).run(STATE, Settings())["external"]
    assert [strip["text"] for strip in external] == ["A title that says it all"]


def test_only_as_many_hits_as_asked_for() -> None:
    update = Search(FakeSearcher([SPAM] * 9), FakeEvaluator()).run(STATE, Settings(web_results=2))
    assert len(update["external"]) == 2


@pytest.mark.parametrize(
    ("searcher", "kind"),
    [
        (None, "search_unavailable"),
        (FakeSearcher([]), "search_empty"),
        (FakeSearcher(error=TimeoutError("20 s")), "search_failed"),
        (FakeSearcher(error=SearchError("Tavily", "quota", "used up")), "search_failed"),
        (FakeSearcher(error=SearchError("Tavily", "key", "not valid")), "search_unavailable"),
    ],
)
@pytest.mark.parametrize("way", ["run", "arun"])
async def test_a_search_without_result_is_an_event(searcher: Any, kind: str, way: str) -> None:
    node = Search(searcher, FakeEvaluator())
    update = node.run(STATE, Settings()) if way == "run" else await node.arun(STATE, Settings())
    assert update["external"] == []
    assert [entry["kind"] for entry in update["events"]] == [kind]
    assert update["events"][0]["fallback"] == "go on without knowledge from the web"

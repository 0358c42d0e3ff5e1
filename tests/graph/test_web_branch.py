"""The web branch end to end: real searchers and the real page reader on loopback sites."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from crag.graph import build_crag
from crag.papers.settings import PaperSettings
from crag.parts import Hit
from crag.settings import Settings
from crag.state import State, strips_of_kind
from crag.testing import FakeChatModel, FakeEvaluator
from crag.web.reader import HttpPageReader
from tests.web.engines import ENGINES, queries, searching
from tests.web.site import Website, website

QUESTION = {"question": "Who designed the lighthouse of Cape Merrow?"}
QUERY = "designer, Cape Merrow Lighthouse"
ANSWER = "Edith Halloran designed it [1]."
SCORES = {"Edith Halloran": 0.9, "grey granite": 0.2}
"""All other paragraphs score -1."""
INCORRECT, AMBIGUOUS = -0.9, 0.0
ENGINE = pytest.mark.parametrize("engine", list(ENGINES))
WAYS = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


@pytest.fixture
def site() -> Iterator[Website]:
    with website() as running:
        yield running


def hits_on(site: Website) -> list[Hit]:
    return [
        Hit("Salt roads", site.at("/navigation"), "About old roads of salt."),
        Hit("Gone", site.at("/404"), "A page about lights that is gone."),
        Hit("Cape Merrow", site.at("/article"), "A lighthouse on the island of Orrin."),
    ]


def parts_for(make_parts: Any, score: float, **parts: Any) -> Any:
    def judge(_: str, text: str) -> float:
        if "Lovelace" in text or "Babbage" in text:
            return score
        return next((found for part, found in SCORES.items() if part in text), -1.0)

    model = FakeChatModel(replies=[QUERY, ANSWER])
    return make_parts(evaluator=FakeEvaluator(judge), model=model, **parts)


def reader() -> HttpPageReader:
    return HttpPageReader(allow_loopback=True)


async def ask(graph: Any, way: str, settings: Settings | None = None) -> State:
    """Ask in one of the two ways; `invoke` runs within the loop that runs this function."""
    if way == "invoke":
        return cast("State", graph.invoke(QUESTION, context=settings))
    return cast("State", await graph.ainvoke(QUESTION, context=settings))


@ENGINE
@WAYS
async def test_an_answer_from_a_page_cites_its_url(
    make_parts: Any, site: Website, engine: str, way: str
) -> None:
    assert asyncio.get_running_loop().is_running()  # As in Jupyter.
    with searching(engine, hits_on(site)) as (server, searcher):
        parts = parts_for(make_parts, INCORRECT, searcher=searcher, reader=reader())
        state = await ask(build_crag(parts), way)
        assert queries(engine, server) == [QUERY] == [state["query"]]
    assert state["answer"] == ANSWER
    (citation,) = state["citations"]
    assert citation["source"]["url"] == site.at("/article")
    assert citation["source"]["title"] == "Cape Merrow Lighthouse"
    assert citation["source"]["position"] == "paragraph 1"
    assert "Edith Halloran" in citation["text"]
    assert_the_trace_is_whole(state, site)
    assert len(parts.model.prompts) == 2 == state["usage"]["llm_calls"]


def assert_the_trace_is_whole(state: State, site: Website) -> None:
    """The state says what was found, what was read, and what was kept and dropped."""
    assert [hit["url"] for hit in state["pages"]] == [hit.url for hit in hits_on(site)]
    assert [(page["url"], page["status"]) for page in state["pages"]] == [
        (site.at("/navigation"), "read"),
        (site.at("/404"), "failed"),
        (site.at("/article"), "read"),
    ]
    assert sorted(site.paths()) == ["/404", "/article", "/navigation", "/robots.txt"]
    kept = [strip["text"] for strip in strips_of_kind(state, "web") if strip["kept"]]
    assert ["Edith Halloran" in text for text in kept] == [True, False]
    dropped = [strip for strip in strips_of_kind(state, "web") if not strip["kept"]]
    assert {strip["source"]["url"] for strip in dropped} == {hit.url for hit in hits_on(site)}
    assert all(strip["reason"] == "below the strip threshold -0.5" for strip in dropped)
    assert "A page about lights that is gone." in [strip["text"] for strip in dropped]
    (failed,) = state["events"]
    assert failed["kind"] == "page_failed"
    assert "/404: the server answered with status 404" in failed["detail"]
    usage = state["usage"]
    assert (usage["searches"], usage["pages"]) == (1, 3)
    assert usage["page_bytes"] == sum(page["fetched_bytes"] for page in state["pages"]) > 3000


async def test_questions_at_the_same_time_share_one_graph(make_parts: Any, site: Website) -> None:
    with searching("wikipedia", hits_on(site)) as (server, searcher):
        parts = parts_for(make_parts, INCORRECT, searcher=searcher, reader=reader())
        graph: Any = build_crag(parts)
        plain = PaperSettings(rewrite=False)
        asked = [graph.ainvoke(QUESTION, context=plain) for _ in range(12)]
        asked += [asyncio.to_thread(graph.invoke, QUESTION, context=plain) for _ in range(4)]
        states = await asyncio.gather(*asked)
        assert len(server.requests) == len(states) == 16
    for state in states:
        assert [page["status"] for page in state["pages"]] == ["read", "failed", "read"]
        assert [strip["kept"] for strip in strips_of_kind(state, "web")].count(True) == 2

"""The query, a human's approval, and hits in the order in which they are read."""

import time
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from crag.errors import SearchError
from crag.graph import build_crag
from crag.nodes.rewrite import Rewrite
from crag.nodes.search import search
from crag.papers.settings import PaperSettings
from crag.parts import Hit
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeChatModel, FakeSearcher

TO_REWRITE = State(question="Who is Ada Lovelace?")


def test_the_reply_is_the_query_on_one_line() -> None:
    model = FakeChatModel(replies=['"Ada Lovelace,\n first program"'])
    update = Rewrite(model).run(TO_REWRITE, Settings())
    assert update["query"] == "Ada Lovelace, first program"
    assert update["usage"]["llm_calls"] == 1
    assert str(model.prompts[0][-1].content).endswith("question: Who is Ada Lovelace?\nquery:")


@pytest.mark.parametrize(
    "model",
    [
        FakeChatModel(error=TimeoutError()), FakeChatModel(refusal="no"),
        *(FakeChatModel(replies=[reply]) for reply in ("", "Well. " * 99, "site:evil.org")),
    ],
)  # fmt: skip
def test_the_question_is_the_query_when_there_is_no_reply(model: Any) -> None:
    update = Rewrite(model).run(TO_REWRITE, Settings())
    assert update["query"] == "Ada Lovelace"
    assert [entry["kind"] for entry in update["events"]] == ["rewrite_failed"]
    assert update["events"][0]["fallback"] == "search for the question's keywords"
    assert update["usage"]["llm_calls"] == 1
    nothing = Rewrite(None).run(TO_REWRITE, Settings())
    assert nothing == {"query": "Ada Lovelace"}


def test_switched_off_or_nothing_to_search_costs_nothing() -> None:
    model = FakeChatModel()
    off = Rewrite(model).run(TO_REWRITE, PaperSettings(rewrite=False))
    assert off == {"query": TO_REWRITE["question"]}
    assert model.prompts == []


def test_the_searcher_says_how_long_a_query_may_be() -> None:
    searcher = FakeSearcher()
    search(State(query="kettle " * 90), Settings(), searcher)
    for longest in (None, 50):
        searcher.longest_query = longest  # type: ignore[attr-defined]
        search(State(query="kettle " * 90), Settings(), searcher)
    assert list(map(len, searcher.queries)) == [398, 398, 48]


def test_biography_questions_are_reduced_to_the_name() -> None:
    assert Rewrite(None).run(TO_REWRITE, PaperSettings(task="biography"))["query"] == "Ada Lovelace"


QUESTION = {"question": "Who wrote the first program?"}
ASKS = Settings(confirm_web=True)
THREAD = {"configurable": {"thread_id": "1"}}


def made(make_parts: Any, score: float = -0.9, **parts: Any) -> tuple[Any, Any]:
    model = FakeChatModel(replies=["Ada, first program", "Ada [1]."])
    parts = make_parts(score, **{"model": model} | parts)
    return build_crag(parts, checkpointer=InMemorySaver()), parts


async def test_the_run_waits_with_the_query(make_parts: Any) -> None:
    graph, parts = made(make_parts)
    state = await graph.ainvoke(QUESTION, THREAD, context=ASKS)
    (asked,) = state["__interrupt__"]
    assert asked.value["query"] == "Ada, first program"
    assert asked.value["question"] == QUESTION["question"]
    assert parts.searcher.queries == []
    state = await graph.ainvoke(Command(resume="approve"), THREAD, context=ASKS)
    assert parts.searcher.queries == ["Ada, first program"]
    assert state["answer"] == "Ada [1]."
    assert state["usage"]["llm_calls"] == 2


QUERY = "Ada, first program"


@pytest.mark.parametrize(
    ("answer", "searched"),
    [
        *((said, QUERY) for said in (True, "approve", " YES ")),
        ({"query": "site:x.org Lovelace notes"}, "Lovelace notes"),
        *((said, "") for said in (False, "refuse", "perhaps", 7, {"query": " "}, {"qury": "Ada"})),
    ],
)
@pytest.mark.parametrize("context", [ASKS, None], ids=["asking", "without settings"])
def test_only_an_approval_searches_whatever_the_settings_of_the_call_that_resumes(
    make_parts: Any, context: Any, answer: Any, searched: str
) -> None:
    graph, parts = made(make_parts)
    graph.invoke(QUESTION, THREAD, context=ASKS)
    state = graph.invoke(Command(resume=answer), THREAD, context=context)
    assert parts.searcher.queries == ([searched] if searched else [])
    assert state["question"] == QUESTION["question"]
    if not searched:
        assert f"was refused by {str(answer)!r}" in state["events"][0]["detail"]
        assert [entry["kind"] for entry in state["events"]] == ["search_refused", "abstained"]
        assert (state["outcome"], state["usage"].get("searches", 0)) == ("not_found", 0)


def test_without_a_searcher_nobody_is_asked(make_parts: Any) -> None:
    graph, _ = made(make_parts, searcher=None)
    state = graph.invoke(QUESTION, THREAD, context=ASKS)
    assert "__interrupt__" not in state
    assert "search_unavailable" in [entry["kind"] for entry in state["events"]]


@pytest.mark.parametrize("config", [None, THREAD])
def test_without_a_checkpointer_nothing_leaves_the_machine(make_parts: Any, config: Any) -> None:
    parts = make_parts(-0.9)
    state = build_crag(parts).invoke(QUESTION, config, context=ASKS)
    assert parts.searcher.queries == []
    assert "search_refused" in [entry["kind"] for entry in state["events"]]
    assert "needs a checkpointer and a thread_id" in state["events"][0]["detail"]


STATE = State(question="Who wrote the first program?", query="first program, author")
SPAM = Hit("Shop", "https://example.com/shop", "Buy programs here for less money today.")
MOBILE = Hit("Ada", "https://en.m.wikipedia.org/wiki/Ada#Life", "The same page on a telephone.")


def urls(update: Any) -> list[str]:
    return [hit["url"] for hit in update["pages"]]


def test_the_query_is_searched_for_once(hits: list[Hit]) -> None:
    searcher = FakeSearcher([*hits, SPAM])
    update = search(STATE, Settings(), searcher)
    assert searcher.queries == [STATE["query"]]
    assert update["usage"]["searches"] == 1
    assert update["usage"]["web_milliseconds"] < 1000
    assert "events" not in update
    assert update["pages"][0]["snippet"] == hits[1].snippet


def test_a_page_of_wikipedia_at_rank_seven_comes_first() -> None:
    others = [Hit(f"Page {n}", f"https://example.org/{n}", "Text.") for n in range(6)]
    wiki = Hit("Ada", "https://en.wikipedia.org/wiki/Ada", "Ada Lovelace.")
    searcher = FakeSearcher([*others, wiki, *others])
    found = urls(search(STATE, Settings(web_results=5), searcher))
    assert found == [wiki.url, *(hit.url for hit in others[:4])]
    assert urls(search(STATE, Settings(web_results=5, wikipedia="off"), searcher)) == [
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

    search(STATE, Settings(wikipedia=wikipedia, web_results=results), Limited([SPAM]))
    assert limits == [asked]


def test_a_page_is_found_once(hits: list[Hit]) -> None:
    update = search(STATE, Settings(), FakeSearcher([hits[1], MOBILE, hits[1], SPAM]))
    assert urls(update) == [hits[1].url, SPAM.url]


def test_a_hit_without_an_address_cannot_be_cited() -> None:
    found = [Hit("No", "", "text"), Hit("Odd", "javascript:alert(1)", "text"), SPAM]
    assert urls(search(STATE, Settings(), FakeSearcher(found))) == [SPAM.url]


@pytest.mark.parametrize(
    ("searcher", "kind"),
    [
        (None, "search_unavailable"),
        (FakeSearcher([]), "search_empty"),
        (FakeSearcher([Hit("a", "", "b")]), "search_empty"),
        (FakeSearcher([Hit("a", SPAM.url, None)]), "search_failed"),  # type: ignore[arg-type]
        (FakeSearcher(error=TimeoutError("20 s")), "search_failed"),
        (FakeSearcher(error=SearchError("Tavily", "quota", "used up")), "search_failed"),
    ],
)
def test_a_search_without_result_is_an_event(searcher: Any, kind: str) -> None:
    update = search(STATE, Settings(), searcher)
    assert update["pages"] == []
    assert [entry["kind"] for entry in update["events"]] == [kind]
    assert update["events"][0]["fallback"] == "continue without web knowledge"


class Sleeper(FakeSearcher):
    """Takes far too long."""

    def search(self, query: str, limit: int) -> list[Hit]:
        time.sleep(0.6)
        return super().search(query, limit)


def test_a_search_beyond_the_budget_of_seconds_is_given_up() -> None:
    settings = Settings(max_web_seconds=0.05)
    start = time.monotonic()
    update = search(STATE, settings, Sleeper([SPAM]))
    assert time.monotonic() - start < 0.5
    assert update["pages"] == []
    (entry,) = update["events"]
    assert (entry["kind"], entry["detail"]) == (
        "search_failed",
        "TimeoutError: no answer within 0.05 seconds",
    )

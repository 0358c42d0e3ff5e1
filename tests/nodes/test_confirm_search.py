"""A human decides whether the web is searched."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from crag.graph import build_crag
from crag.settings import Settings
from crag.state import strips_of_kind
from crag.testing import FakeChatModel

QUESTION = {"question": "Who wrote the first program?"}
ASKS = Settings(confirm_web=True)
THREAD = {"configurable": {"thread_id": "1"}}


def made(make_parts: Any, score: float = -0.9, **parts: Any) -> tuple[Any, Any]:
    model = FakeChatModel(replies=["Ada, first program", "Ada [1]."])
    parts = make_parts(score, **{"model": model} | parts)
    return build_crag(parts, checkpointer=InMemorySaver()), parts


async def test_the_run_waits_with_the_query_and_the_reason(make_parts: Any) -> None:
    graph, parts = made(make_parts)
    state = await graph.ainvoke(QUESTION, THREAD, context=ASKS)
    (asked,) = state["__interrupt__"]
    assert asked.value["query"] == "Ada, first program"
    assert asked.value["question"] == QUESTION["question"]
    assert asked.value["reason"] == (
        "Incorrect: the best of 2 documents scores -0.90; the lower threshold is -0.50"
    )
    assert parts.searcher.queries == []
    state = await graph.ainvoke(Command(resume="approve"), THREAD, context=ASKS)
    assert parts.searcher.queries == ["Ada, first program"]
    assert state["answer"] == "Ada [1]."
    assert state["usage"]["llm_calls"] == 2


@pytest.mark.parametrize(
    "answer", [True, "approve", " YES ", {"decision": "approve"}, {"approve": True}]
)
def test_approvals(make_parts: Any, answer: Any) -> None:
    graph, parts = made(make_parts)
    graph.invoke(QUESTION, THREAD, context=ASKS)
    graph.invoke(Command(resume=answer), THREAD, context=ASKS)
    assert parts.searcher.queries == ["Ada, first program"]


@pytest.mark.parametrize(
    "answer", [False, "refuse", "no", {"decision": "refuse"}, "perhaps", 7, {"query": " "}]
)
def test_everything_else_is_a_refusal(make_parts: Any, answer: Any) -> None:
    graph, parts = made(make_parts)
    graph.invoke(QUESTION, THREAD, context=ASKS)
    state = graph.invoke(Command(resume=answer), THREAD, context=ASKS)
    assert parts.searcher.queries == []
    assert "search_refused" in [entry["kind"] for entry in state["events"]]
    assert state["outcome"] == "not_found"


@pytest.mark.parametrize("answer", ["perhaps", {"query": " "}, {"qury": "Ada"}])
def test_what_is_no_decision_is_named_as_it_was_given(make_parts: Any, answer: Any) -> None:
    graph, _ = made(make_parts)
    graph.invoke(QUESTION, THREAD, context=ASKS)
    state = graph.invoke(Command(resume=answer), THREAD, context=ASKS)
    assert f"{str(answer)!r} is not a decision" in state["events"][0]["detail"]
    assert [entry["kind"] for entry in state["events"]] == ["search_refused", "abstained"]
    assert state["usage"].get("searches", 0) == 0


def test_an_edited_query_is_searched_for_without_operators(make_parts: Any) -> None:
    graph, parts = made(make_parts)
    graph.invoke(QUESTION, THREAD, context=ASKS)
    state = graph.invoke(
        Command(resume={"query": "site:x.org Lovelace notes"}), THREAD, context=ASKS
    )
    assert parts.searcher.queries == ["Lovelace notes"] == [state["query"]]
    assert state["question"] == QUESTION["question"]


def test_refused_on_ambiguous_leaves_internal_knowledge(make_parts: Any) -> None:
    graph, parts = made(make_parts, 0.0, model=FakeChatModel(replies=["query", "Ada [1]."]))
    state = graph.invoke(QUESTION, THREAD, context=ASKS)
    assert (
        "Ambiguous: the best of 2 documents scores 0.00"
        in state["__interrupt__"][0].value["reason"]
    )
    state = graph.invoke(Command(resume="refuse"), THREAD, context=ASKS)
    assert parts.searcher.queries == []
    assert strips_of_kind(state, "document")
    assert state["answer"] == "Ada [1]."
    assert len(parts.evaluator.calls) == 2  # Documents and strips once each, not again on resuming.


@pytest.mark.parametrize(
    ("answer", "searched"),
    [("refuse", []), ("approve", ["Ada, first program"]), ({"query": "Lovelace"}, ["Lovelace"])],
)
def test_the_decision_counts_when_the_run_is_resumed_without_settings(
    make_parts: Any, answer: Any, searched: list[str]
) -> None:
    graph, parts = made(make_parts)
    graph.invoke(QUESTION, THREAD, context=ASKS)
    graph.invoke(Command(resume=answer), THREAD)
    assert parts.searcher.queries == searched


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

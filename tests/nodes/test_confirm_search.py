"""A human decides whether the web is searched."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from crag.graph import build_crag
from crag.settings import Settings
from crag.testing import FakeChatModel

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
    ("answer", "searched", "detail"),
    [
        *((said, QUERY, "") for said in (True, "approve", " YES ")),
        ({"query": "site:x.org Lovelace notes"}, "Lovelace notes", ""),
        *((said, "", "was refused") for said in (False, "refuse", "no")),
        *(
            (said, "", f"{str(said)!r} is not a decision")
            for said in ("perhaps", 7, {"query": " "}, {"qury": "Ada"})
        ),
    ],
)
@pytest.mark.parametrize("context", [ASKS, None], ids=["asking", "without settings"])
def test_only_an_approval_searches_whatever_the_settings_of_the_call_that_resumes(
    make_parts: Any, context: Any, answer: Any, searched: str, detail: str
) -> None:
    graph, parts = made(make_parts)
    graph.invoke(QUESTION, THREAD, context=ASKS)
    state = graph.invoke(Command(resume=answer), THREAD, context=context)
    assert parts.searcher.queries == ([searched] if searched else [])
    assert state["question"] == QUESTION["question"]
    if not searched:
        assert detail in state["events"][0]["detail"]
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

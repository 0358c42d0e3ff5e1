"""Self-CRAG as a graph: which branches run, what reflection is given, and what it costs."""

from collections import Counter
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from crag.papers.settings import PaperSettings
from crag.reflection.testing import fake_decision
from crag.testing import FakeEvaluator
from tests.conftest import DOCUMENTS, HITS
from tests.graph.reflective import (
    OWN,
    QUESTION,
    build_self_crag,
    goes_on,
    kinds,
    plain,
    reflecting,
    steps,
)

ACTIONS = {
    "correct": FakeEvaluator(0.0, upper=0.0, lower=-0.4),
    "incorrect": FakeEvaluator(0.0, upper=0.5, lower=0.4),
    "ambiguous": FakeEvaluator(0.0, upper=0.5, lower=-0.4),
}
"""Every strip passes, and the thresholds choose the action."""
ADA, BABBAGE = (document.page_content for document in DOCUMENTS)
WEB_ADA, WEB_FIRST = HITS[1].snippet, HITS[0].snippet
INTERNAL, EXTERNAL = f"{ADA}\n{BABBAGE}", f"{WEB_ADA}\n{WEB_FIRST}"
BOTH = f"{INTERNAL}\n{EXTERNAL}"
BEGIN, END = ["open_run", "decide", "retrieve", "grade"], ["reflect:finish_reflection", "reflect"]
WEB = [f"web:{node}" for node in ("rewrite", "search", "read_pages", "select")] + ["web"]
BRANCHES = {"correct": ["refine"], "incorrect": WEB, "ambiguous": ["refine", *WEB]}


def parts_of(make_parts: Any, action: str, candidates: Any = goes_on, **replaced: Any) -> Any:
    return reflecting(make_parts, candidates, evaluator=ACTIONS[action], **replaced)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("knowledge", ["routed", "assembled", "distributed"])
@pytest.mark.parametrize(("form", "node"), [("short", "short_form"), ("long", "beam_step")])
def test_the_branches_that_run(
    make_parts: Any, action: str, knowledge: str, form: str, node: str
) -> None:
    parts = parts_of(make_parts, action)
    run = steps(build_self_crag(parts), form=form, self_crag_knowledge=knowledge)
    branches = BRANCHES[action if knowledge == "routed" else "ambiguous"]
    reflect = [step for step in run if step == f"reflect:{node}"]
    assert 1 <= len(reflect) <= (1 if form == "short" else 6)
    assert run[: len(BEGIN)] == BEGIN
    assert run[-len(reflect) - 3 :] == ["prepare_passages", *reflect, *END]
    assert Counter(run[len(BEGIN) : -len(reflect) - 3]) == Counter(branches)
    assert [step for step in run if step in WEB] == [step for step in WEB if step in branches]
    assert len(parts.searcher.queries) == ("web" in branches)


@pytest.mark.parametrize(
    ("action", "knowledge", "offered"),
    [
        ("ambiguous", "routed", [("ambiguous", BOTH)]),
        ("correct", "assembled",
         [("correct", INTERNAL), ("incorrect", EXTERNAL), ("ambiguous", BOTH)]),
        ("incorrect", "distributed",
         [("correct", INTERNAL), ("web", WEB_ADA), ("web", WEB_FIRST), ("ambiguous", BOTH)]),
    ],
)  # fmt: skip
def test_what_reflection_is_offered(
    make_parts: Any, action: str, knowledge: str, offered: list[tuple[str, str]]
) -> None:
    parts = parts_of(make_parts, action)
    varied: dict[str, Any] = {"self_crag_knowledge": knowledge, "strip_threshold": -0.5}
    varied["knowledge_title"] = "first_document"
    settings = PaperSettings.model_validate(varied)
    state = build_self_crag(parts).invoke(QUESTION, context=settings)
    assert state["action"] == action
    assert [(p["label"], p["text"]) for p in state["reflection"]["passages"]] == offered
    assert {p["title"] for p in state["reflection"]["passages"]} == {"Ada Lovelace"}
    assert all("; ".join(s["text"] for s in p["strips"]) for p in state["reflection"]["passages"])
    assert [[s["text"] for s in p["strips"]] for p in state["reflection"]["passages"]] == [
        text.split("\n") for _, text in offered
    ]
    ((_, generated, _),) = parts.reflection.generated
    assert [(p.title, p.text) for p in generated] == [("Ada Lovelace", t) for _, t in offered]
    assert state["usage"]["llm_calls"] == 2


@pytest.mark.parametrize("form", ["short", "long", "poster"])
def test_a_question_that_needs_nothing_is_answered_directly(make_parts: Any, form: str) -> None:
    parts = parts_of(make_parts, "correct", otherwise=fake_decision(0.1))
    node = {"short": "short_form", "long": "beam_step", "poster": "graded_loop"}[form]
    assert steps(build_self_crag(parts), form=form) == [*BEGIN[:2], f"reflect:{node}", *END]
    state = build_self_crag(parts).invoke(QUESTION, context={"form": form})
    assert (state["answer"], state["citations"]) == (OWN, [])
    assert kinds(state) == ["own_knowledge"]
    assert "0.100 is not above 0.2" in state["events"][0]["detail"]
    assert parts.retriever.questions == parts.searcher.queries == []


def test_strips_of_knowledge_are_cited_and_not_the_text_made_of_them(make_parts: Any) -> None:
    settings = {"form": "long", "retrieval_mode": "always"}
    state = build_self_crag(parts_of(make_parts, "ambiguous")).invoke(QUESTION, context=settings)
    first, second = state["citations"][0], state["citations"][1]
    assert (first["text"], first["source"]["url"]) == (ADA, "ada.md")
    assert (second["text"], second["source"]["url"]) == (BABBAGE, "babbage.md")
    cited = [entry["source"]["url"] for entry in state["citations"][2:]]
    assert cited == [HITS[1].url, HITS[0].url]
    assert [entry["number"] for entry in state["citations"]] == [1, 2, 3, 4]
    assert "Engine [2]." in state["answer"]
    assert "in 1843 [3]." in state["answer"]


def test_nothing_of_an_earlier_question_is_left_on_a_thread(make_parts: Any) -> None:
    parts = parts_of(make_parts, "ambiguous", decisions={}, otherwise=fake_decision(0.3))
    graph = build_self_crag(parts, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    asked: Any = {"messages": [HumanMessage("Who wrote it?")]}
    assert graph.invoke(asked, thread)["action"] == "ambiguous"
    again: Any = {"messages": [HumanMessage("And what then?")]}
    settings = {"delta": 0.5, "contextualize": False}
    after = graph.invoke(again, thread, context=settings)
    alone = build_self_crag(parts).invoke(again, context=settings)
    assert plain(after) == plain(alone)
    assert after["action"] is after["thresholds"] is None
    assert [type(message) for message in after["messages"]] == [HumanMessage, AIMessage] * 2

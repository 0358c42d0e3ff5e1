"""Chat models behind servers that misbehave as real ones do: each way × graph × door."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.generation import load_chat_model
from crag.graph import build_crag, build_rag, build_self_crag, build_self_rag
from crag.parts import Parts
from crag.reflection.backends.prompted import PromptedReflection
from crag.testing import FakeEvaluator, FakeRetriever
from tests import misbehaving
from tests.loopback import serving
from tests.misbehaving import CITATIONS, CUT, ENDLESS, ERRORS, REFUSALS, THOUGHT, THOUGHTS, Way

QUESTION = "When is the barn let?"
DOCUMENTS = [Document("The barn is let in May.", metadata={"title": "Notes"})]
State = dict[str, Any]


def _streamed(graph: Any, given: State) -> State:
    state: State = {}
    for mode, part in graph.stream(given, stream_mode=["messages", "values"]):
        state = part if mode == "values" else state
    return state


GRAPHS: dict[str, Callable[[Parts], Any]] = {
    "crag": build_crag, "rag": build_rag, "self_rag": build_self_rag, "self_crag": build_self_crag,
}  # fmt: skip
DOORS: dict[str, Callable[[Any, State], State]] = {
    "invoke": lambda graph, given: graph.invoke(given),
    "ainvoke": lambda graph, given: asyncio.run(graph.ainvoke(given)),
    "stream": _streamed,
}


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Callable[[Any, State], State]:
    return DOORS[request.param]


@pytest.fixture(params=GRAPHS)
def ask(
    request: pytest.FixtureRequest, door: Callable[[Any, State], State]
) -> Callable[..., State]:
    def asked(way: Way, timeout: float = 5.0) -> State:
        with serving(way) as server:
            model = load_chat_model("m", base_url=f"{server.url}/v1", retries=0, timeout=timeout)
            parts = Parts(
                retriever=FakeRetriever(documents=DOCUMENTS),
                evaluator=FakeEvaluator(0.9),
                model=model,
                reflection=PromptedReflection(model),
            )
            return door(GRAPHS[request.param](parts), {"question": QUESTION})

    return asked


def _kinds(state: State) -> set[str]:
    return {event["kind"] for event in state["events"]}


@pytest.mark.parametrize("way", CUT.values(), ids=CUT)
def test_a_reply_that_was_cut_is_no_sure_answer(ask: Callable[..., State], way: Way) -> None:
    state = ask(way)
    assert "400" not in state["answer"]
    if state["reflection"]:  # Half a form has no critiques.
        assert state["outcome"] == "not_found"
        assert any("cut off" in event["detail"] for event in state["events"])
        return
    assert "in May" in state["answer"]
    assert state["outcome"] == "likely"
    assert "reply_cut" in _kinds(state)


@pytest.mark.parametrize("way", THOUGHTS.values(), ids=THOUGHTS)
def test_thoughts_are_not_shown(ask: Callable[..., State], way: Way) -> None:
    state = ask(way)
    assert state["answer"] == misbehaving.RIGHT
    assert THOUGHT not in str(state)


@pytest.mark.parametrize("way", CITATIONS.values(), ids=CITATIONS)
def test_citations_in_other_formats_are_read(ask: Callable[..., State], way: Way) -> None:
    state = ask(way)
    assert "[1]" in state["answer"]
    assert [citation["number"] for citation in state["citations"]] == [1]
    assert state["outcome"] == "answered"


@pytest.mark.parametrize("way", REFUSALS.values(), ids=REFUSALS)
def test_nothing_is_sent_that_nobody_set(ask: Callable[..., State], way: Way) -> None:
    state = ask(way)
    assert (state["answer"], state["outcome"]) == (misbehaving.RIGHT, "answered")


@pytest.mark.parametrize(("way", "words"), ERRORS.values(), ids=ERRORS)
def test_the_trace_tells_what_the_server_said(
    ask: Callable[..., State], way: Way, words: str
) -> None:
    state = ask(way)
    failed = [event for event in state["events"] if event["kind"] == "model_failed"]
    assert failed
    assert all(words in event["detail"] for event in failed)


@pytest.mark.parametrize("way", ENDLESS.values(), ids=ENDLESS)
def test_a_reply_without_end_is_given_up(ask: Callable[..., State], way: Way) -> None:
    begun = time.monotonic()
    state = ask(way, timeout=0.2)
    assert time.monotonic() - begun < 10
    assert {"model_failed", "model_empty"} & _kinds(state)


def test_one_model_serves_event_loops_one_after_the_other() -> None:
    with serving(CITATIONS["note"]) as server:
        model = load_chat_model("m", base_url=f"{server.url}/v1", retries=0)
        retriever = FakeRetriever(documents=DOCUMENTS)
        graph = build_crag(Parts(retriever=retriever, evaluator=FakeEvaluator(0.9), model=model))
        for _ in range(3):
            state = asyncio.run(graph.ainvoke({"question": QUESTION}))
            assert "[1]" in state["answer"]

"""Chat models that misbehave as real ones do: each way × graph × door, and mutated replies."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from crag.generation import load_chat_model
from crag.graph import build_crag, build_rag, build_self_crag, build_self_rag
from crag.parts import Parts
from crag.reflection.backends.prompted import PromptedReflection
from crag.testing import FakeEvaluator, FakeRetriever
from tests import misbehaving
from tests.loopback import serving
from tests.misbehaving import (
    CUT,
    ENDLESS,
    ERRORS,
    REFUSALS,
    RIGHT,
    THOUGHT,
    THOUGHTS,
    Way,
    in_form,
    says,
)

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


def parts_of(model: Any) -> Parts:
    """Return parts of which each asks the model that can."""
    return Parts(
        retriever=FakeRetriever(documents=DOCUMENTS), evaluator=FakeEvaluator(0.9), model=model,
        reflection=PromptedReflection(model),
    )  # fmt: skip


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
            return door(GRAPHS[request.param](parts_of(model)), {"question": QUESTION})

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


def test_a_citation_in_another_format_is_read(ask: Callable[..., State]) -> None:
    state = ask(says("The barn is let in May【1†L1-L4】."))
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
    with serving(says("The barn is let in May[^1].")) as server:
        model = load_chat_model("m", base_url=f"{server.url}/v1", retries=0)
        graph = build_crag(parts_of(model))
        for _ in range(3):
            state = asyncio.run(graph.ainvoke({"question": QUESTION}))
            assert "[1]" in state["answer"]


TEXTS = [
    RIGHT,
    *(way({})["choices"][0]["message"]["content"] for way in THOUGHTS.values()),
    f"{RIGHT}\n\n```sh\nbarn --let\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |",
    "I could not find this in the documents.",
]
ENDINGS: dict[str, dict[str, Any]] = {
    "openai": {"model_provider": "openai", "finish_reason": "stop"},
    "anthropic": {"model_provider": "anthropic", "stop_reason": "end_turn"},
    "gemini": {"model_provider": "google_genai", "finish_reason": "STOP"},
    "ollama": {"model_provider": "ollama", "done_reason": "stop"},
    "bedrock": {"model_provider": "bedrock_converse", "stopReason": "end_turn"},
    "lm studio": {"model_provider": "openai", "finish_reason": "eosFound"},
    "fake": {},
}
CUTS: dict[str, dict[str, Any]] = {
    "openai": {"model_provider": "openai", "finish_reason": "length"},
    "anthropic": {"model_provider": "anthropic", "stop_reason": "max_tokens"},
    "gemini": {"model_provider": "google_genai", "finish_reason": "MAX_TOKENS"},
    "ollama": {"model_provider": "ollama", "done_reason": "length"},
    "deepseek": {"model_provider": "deepseek", "finish_reason": "insufficient_system_resource"},
    "vertex": {"finish_reason": "FinishReason.MAX_TOKENS"},
    "responses": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    "vllm": {"model_provider": "openai", "finish_reason": "abort"},
    "unheard of": {"finish_reason": "maxPredictedTokensReached"},
    "broken stream": {"model_provider": "openai"},
}


def _blocks(shape: str, text: str) -> str | list[str | dict[str, Any]]:
    match shape:
        case "anthropic":
            thought = {"type": "thinking", "thinking": THOUGHT, "signature": "x"}
            return [thought, {"type": "text", "text": text}]
        case "gemini":
            return [{"type": "thinking", "thinking": THOUGHT}, text]
        case "responses":
            summary = [{"type": "summary_text", "text": THOUGHT}]
            return [{"type": "reasoning", "summary": summary}, {"type": "text", "text": text}]
        case "mistral":
            thought = {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}
            return [thought, {"type": "text", "text": text}]
        case _:
            return text


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Return a text of which a part is left out, doubled or moved, without breaking a mark."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        part, cut = text[start:end], text[:start] + text[end:]
        if any(mark in part for mark in "<>[]◁▷|/") or "analysis" in text or THOUGHT in text:
            continue  # Half a mark is a mark of nobody.
        to = draw(st.integers(0, len(cut)))
        doubled, moved = text[:start] + part + text[start:], cut[:to] + part + cut[to:]
        text = draw(st.sampled_from([cut, doubled, moved]))
    return text


@pytest.mark.parametrize("build", [build_crag, build_rag, build_self_rag, build_self_crag])
@given(
    text=mutated(),
    shape=st.sampled_from(["openai", "anthropic", "gemini", "mistral", "responses", "field"]),
    ending=st.sampled_from([*ENDINGS.items(), *CUTS.items()]),
)
def test_no_reply_raises_or_shows_a_thought_and_none_is_sure_after_a_cut(
    build: Any, text: str, shape: str, ending: tuple[str, dict[str, Any]]
) -> None:
    said = in_form(text) if build in {build_self_rag, build_self_crag} else text
    # As DeepSeek, llama.cpp and vLLM name it, and as OpenRouter does.
    beside = {"reasoning_content": THOUGHT, "reasoning": THOUGHT} if shape == "field" else {}
    message = AIMessage(_blocks(shape, said), additional_kwargs=beside, response_metadata=ending[1])
    model = FakeMessagesListChatModel(responses=[message])
    state = build(parts_of(model)).invoke({"question": "When is the barn let?"})
    assert THOUGHT not in str(state)
    assert state["outcome"] in {"answered", "likely", "not_found"}
    written = state["answer"] != DOCUMENTS[0].page_content and "“" not in state["answer"]
    if ending in CUTS.items() and written:
        assert state["outcome"] != "answered"

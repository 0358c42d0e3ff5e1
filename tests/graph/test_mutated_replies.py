"""Replies of chat models in the shapes of their providers, mutated, through the graphs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from crag.graph import build_crag, build_rag, build_self_crag, build_self_rag
from crag.parts import Parts
from crag.reflection.backends.prompted import PromptedReflection
from crag.testing import FakeEvaluator, FakeRetriever
from tests.misbehaving import RIGHT, THOUGHT, THOUGHTS, in_form

DOCUMENTS = [Document("The barn is let in May.", metadata={"title": "Notes"})]
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
    "fake": {},
}
CUTS: dict[str, dict[str, Any]] = {
    "openai": {"model_provider": "openai", "finish_reason": "length"},
    "anthropic": {"model_provider": "anthropic", "stop_reason": "max_tokens"},
    "gemini": {"model_provider": "google_genai", "finish_reason": "MAX_TOKENS"},
    "ollama": {"model_provider": "ollama", "done_reason": "length"},
    "deepseek": {"model_provider": "deepseek", "finish_reason": "insufficient_system_resource"},
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
    parts = Parts(
        retriever=FakeRetriever(documents=DOCUMENTS),
        evaluator=FakeEvaluator(0.9),
        model=model,
        reflection=PromptedReflection(model),
    )
    state = build(parts).invoke({"question": "When is the barn let?"})
    assert THOUGHT not in state["answer"]
    assert state["outcome"] in {"answered", "likely", "not_found"}
    written = state["answer"] != DOCUMENTS[0].page_content and "“" not in state["answer"]
    if ending in CUTS.items() and written:
        assert state["outcome"] != "answered"

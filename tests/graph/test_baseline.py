"""What correction is compared with."""

from typing import Any

from crag.graph import build_no_retrieval, build_rag

QUESTION = {"question": "Who wrote the first program?"}


def test_rag_hands_every_document_on_ungraded(make_parts: Any) -> None:
    parts = make_parts(-1.0)
    state = build_rag(parts).invoke(QUESTION)
    assert "Babbage designed" in str([strip["text"] for strip in state["strips"]])
    assert parts.evaluator.calls == []
    assert state["usage"] == {"llm_calls": 1}
    assert state["citations"][0]["source"]["url"] == "ada.md"


def test_no_retrieval_asks_the_model_alone(make_parts: Any) -> None:
    parts = make_parts()
    state = build_no_retrieval(parts).invoke(QUESTION)
    assert parts.retriever.questions == []
    assert state["answer"]
    assert state["citations"] == []
    assert [entry["kind"] for entry in state["events"]] == ["citation_removed", "own_knowledge"]

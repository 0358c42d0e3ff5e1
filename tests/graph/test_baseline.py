"""What correction is compared with."""

from typing import Any

import pytest

from crag.graph import build_no_retrieval, build_rag
from crag.papers.settings import PaperSettings
from crag.parts import Parts
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever
from tests.conftest import DOCUMENTS

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


@pytest.mark.parametrize(
    ("task", "told", "question"),
    [
        ("pubhealth", "single word true", "Tea cures colds."),
        ("arc", "Four candidate answers", "Which one?\nA: one\nB: two"),
        ("asqa", "several right answers", "Who won?"),
        ("biography", "several sentences", "Who is Ada?"),
    ],
)
@pytest.mark.parametrize("build", [build_no_retrieval, build_rag])
def test_every_task_keeps_its_instruction(build: Any, task: str, told: str, question: str) -> None:
    if (build, task) == (build_rag, "biography"):
        told = "Answer this question"
    model = FakeChatModel(replies=["true"])
    parts = Parts(
        retriever=FakeRetriever(documents=DOCUMENTS), evaluator=FakeEvaluator(), model=model
    )
    build(parts).invoke(
        {"question": question}, context=PaperSettings.model_validate({"task": task})
    )
    prompt = "\n".join(str(message.content) for message in model.prompts[0])
    assert told in prompt
    assert question.splitlines()[0] in prompt
    assert ("A: one\nB: two" in prompt) == (task == "arc")

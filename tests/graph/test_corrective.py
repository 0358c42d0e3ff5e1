"""Which nodes run for each action, in which order, what they cost, and what it is compared with."""

from dataclasses import fields, replace
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.errors import CragError
from crag.graph import build_crag, build_no_retrieval, build_rag
from crag.parts import Parts
from crag.state import strips_of_kind
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever

QUESTION = {"question": "Who wrote the first program?"}
INCORRECT = -0.9


@pytest.mark.parametrize(
    ("score", "action", "branches", "llm_calls"),
    [
        (0.9, "correct", ["refine"], 1),
        (0.0, "ambiguous", ["refine", "web"], 2),
        (INCORRECT, "incorrect", ["web"], 2),
    ],
)
def test_each_action_runs_its_branches_and_joins_once(
    make_parts: Any, score: float, action: str, branches: list[str], llm_calls: int
) -> None:
    parts = make_parts(score)
    seen = build_crag(parts).stream(QUESTION, stream_mode=["updates", "values"])
    steps = list(seen)
    order = [node for mode, update in steps if mode == "updates" for node in update]
    state: Any = steps[-1][1]
    assert order[:3] == ["open_run", "retrieve", "grade"]
    assert (sorted(order[3:-1]), order[-1]) == (branches, "generate")
    assert (state["action"], state["usage"]["llm_calls"]) == (action, llm_calls)
    assert len(parts.model.prompts) == llm_calls


def test_branches_of_ambiguous_run_at_the_same_time(make_parts: Any) -> None:
    """Refinement and search each wait for the other to have begun; in sequence they never would."""
    import threading

    barrier = threading.Barrier(2, timeout=20)
    waited: list[bool] = []

    class Evaluator(FakeEvaluator):
        def score(self, question: str, texts: Any) -> list[float]:
            # The strips; documents were the first call. Web text may follow before it is counted.
            if len(self.calls) == 1 and not waited:
                waited.append(True)
                barrier.wait()
            return super().score(question, texts)

    class Model(FakeChatModel):
        def _generate(self, *given: Any, **more: Any) -> Any:
            if not self.prompts:  # The rewrite; the answer comes after the join.
                barrier.wait()
            return super()._generate(*given, **more)

    state = build_crag(make_parts(0.0, evaluator=Evaluator(0.0), model=Model())).invoke(QUESTION)
    assert strips_of_kind(state, "document")
    assert strips_of_kind(state, "web")
    assert not barrier.broken


def test_the_question_is_answered_and_only_the_query_is_rewritten(make_parts: Any) -> None:
    model = FakeChatModel(replies=["Ada, first program", "Ada [1]."])
    parts = make_parts(INCORRECT, model=model)
    state = build_crag(parts).invoke(QUESTION)
    assert state["question"] == QUESTION["question"]
    assert state["query"] == "Ada, first program"
    assert parts.searcher.queries == ["Ada, first program"]
    assert all(question == QUESTION["question"] for question, _ in parts.evaluator.calls)
    assert QUESTION["question"] in str(model.prompts[-1])


def tokens(chunks: list[tuple[Any, dict[str, Any]]], node: str) -> list[str]:
    return [message.text for message, about in chunks if about["langgraph_node"] == node]


async def test_tokens_stream_in_messages_mode(make_parts: Any) -> None:
    expected = ["Ada", " ", "Lovelace", " ", "did", " ", "[1]."]
    sync = list(build_crag(make_parts()).stream(QUESTION, stream_mode="messages"))
    assert [text for text in tokens(sync, "generate") if text] == expected
    graph = build_crag(make_parts())
    awaited = [chunk async for chunk in graph.astream(QUESTION, stream_mode="messages")]
    assert [text for text in tokens(awaited, "generate") if text] == expected


def test_what_is_checked_is_every_part(make_parts: Any) -> None:
    parts = make_parts()
    for field in fields(Parts):
        with pytest.raises(CragError, match=rf"Parts\({field.name}=…\) cannot be object"):
            replace(parts, **{field.name: object()})
    with pytest.raises(CragError, match=r"Parts\(model=…\) cannot be the class FakeChatModel"):
        replace(parts, model=FakeChatModel)
    with pytest.raises(CragError, match=r"built of Parts\(retriever=…\), not of FakeRetriever"):
        build_crag(parts.retriever)


def test_names_are_those_of_the_question_as_it_is_read(make_parts: Any) -> None:
    text = "Kubernetes starts what fails again. It waits ten seconds before the first restart."
    said = "It waits ten seconds before the first restart [1]."
    retriever = FakeRetriever(documents=[Document(text)])
    parts = make_parts(retriever=retriever, model=FakeChatModel(replies=[said]))
    asked = {"question": "How long does Kuberntes wait before the first restart?"}
    state = build_crag(parts).invoke(asked)
    assert state["answer"] == said
    assert "uncited_answer" not in [entry["kind"] for entry in state["events"]]


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

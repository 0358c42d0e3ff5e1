"""Which nodes run for each action, in which order, and what they cost."""

from collections import Counter
from dataclasses import fields, replace
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from crag.errors import CragError, SettingsError
from crag.graph import build_crag
from crag.parts import Parts
from crag.state import strips_of_kind
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever

QUESTION = {"question": "Who wrote the first program?"}
CORRECT, AMBIGUOUS, INCORRECT = 0.9, 0.0, -0.9
WEB = ["web"]


def nodes_run(graph: Any, **options: Any) -> list[str]:
    return [
        node
        for update in graph.stream(QUESTION, stream_mode="updates", **options)
        for node in update
    ]


@pytest.mark.parametrize(
    ("score", "action", "order", "llm_calls"),
    [
        (CORRECT, "correct", ["open_run", "retrieve", "grade", "refine", "generate"], 1),
        (INCORRECT, "incorrect", ["open_run", "retrieve", "grade", *WEB, "generate"], 2),
    ],
)
def test_each_action_runs_its_nodes_in_order(
    make_parts: Any, score: float, action: str, order: list[str], llm_calls: int
) -> None:
    parts = make_parts(score)
    assert nodes_run(build_crag(parts)) == order
    assert len(parts.model.prompts) == llm_calls
    state = build_crag(parts).invoke(QUESTION)
    assert state["action"] == action
    assert state["usage"]["llm_calls"] == llm_calls


def test_ambiguous_runs_both_branches_and_joins_once(make_parts: Any) -> None:
    parts = make_parts(AMBIGUOUS)
    order = nodes_run(build_crag(parts))
    assert order[:3] == ["open_run", "retrieve", "grade"]
    assert order[-1] == "generate"
    assert Counter(order) == Counter(["open_run", "retrieve", "grade", "refine", *WEB, "generate"])
    assert len(parts.model.prompts) == 2
    assert build_crag(parts).invoke(QUESTION)["action"] == "ambiguous"


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


def test_a_wrong_setting_is_refused_before_the_run(make_parts: Any) -> None:
    parts = make_parts()
    with pytest.raises(SettingsError, match="equal to 1"):
        build_crag(parts).invoke(QUESTION, context={"k": 0})
    with pytest.raises(SettingsError, match="colour"):
        build_crag(parts).invoke(QUESTION, context={"colour": "red"})
    assert parts.retriever.questions == []


def test_nothing_of_an_earlier_question_is_left_on_a_thread(make_parts: Any) -> None:
    evaluator = FakeEvaluator(lambda question, _: 0.0 if "first" in question else 0.9)
    graph = build_crag(make_parts(evaluator=evaluator), checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    first = graph.invoke(QUESTION, thread)
    assert strips_of_kind(first, "web")
    second = graph.invoke({"question": "Who designed the engine?"}, thread)
    assert second["action"] == "correct"
    assert strips_of_kind(second, "web") == []
    assert second["query"] == ""
    assert second["usage"]["llm_calls"] == 1
    assert len(second["events"]) < 2


def test_without_a_searcher_incorrect_abstains_and_spends_no_call(make_parts: Any) -> None:
    parts = make_parts(INCORRECT, searcher=None)
    state = build_crag(parts).invoke(QUESTION)
    assert state["outcome"] == "not_found"
    assert state["answer"] == "I could not find this in the documents."
    assert [entry["kind"] for entry in state["events"]] == ["search_unavailable", "abstained"]
    assert parts.model.prompts == []


def test_what_is_checked_is_every_part(make_parts: Any) -> None:
    parts = make_parts()
    for field in fields(Parts):
        if field.name != "searcher_hint":
            with pytest.raises(CragError, match=rf"Parts\({field.name}=…\) cannot be object"):
                replace(parts, **{field.name: object()})


def test_one_part_is_no_graph() -> None:
    retriever: Any = FakeRetriever()
    with pytest.raises(CragError, match=r"takes Parts\(retriever=….*no FakeRetriever"):
        build_crag(retriever)

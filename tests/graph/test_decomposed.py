"""Questions of several parts: each corrected alone, bounded, and answered together."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from crag.answering.outcome import UNSURE, UNSURE_OF_PART
from crag.evaluators import load_evaluator
from crag.generation import ExtractiveAnswerer
from crag.graph import build_crag, build_decomposed
from crag.parts import Parts, Quotation
from crag.settings import Settings
from crag.testing import FakeChatModel, FakeEvaluator, FakeQuoter, FakeSearcher
from tests.conftest import HITS

TWO = "When does the ferry leave? Who runs the bakery?"
PLAN = json.dumps({"questions": ["Who runs the bakery?", "Where was #1 born?"]})
SHELVES = {
    "ferry": "The ferry to Orrin leaves at seven in the morning. See [2] for the fares.",
    "bakery": "The bakery of Orrin is run by Edda Holm.",
    "born": "Edda Holm was born in Merrow.",
}


class Shelves(BaseRetriever):
    """Finds the documents whose word stands in the question."""

    asked: list[str] = []  # noqa: RUF012 - pydantic copies it

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager
        self.asked.append(query)
        return [
            Document(text, id=word, metadata={"source": f"{word}.txt"})
            for word, text in SHELVES.items()
            if word in query
        ]


def relevant(question: str, text: str) -> float:
    return 0.9 if any(word in question and text == SHELVES[word] for word in SHELVES) else -0.9


def parts(**changed: Any) -> Parts:
    plain = Parts(
        retriever=Shelves(asked=[]), evaluator=FakeEvaluator(relevant), quoter=FakeQuoter()
    )
    return replace(plain, **changed)


def kinds(state: Any) -> list[str]:
    return [event["kind"] for event in state["events"]]


def test_each_part_is_corrected_alone_and_cited_across() -> None:
    state = build_decomposed(parts()).invoke({"question": TWO})
    assert state["answer"] == f"“{SHELVES['ferry']}” [1]\n\n“{SHELVES['bakery']}” [2]"
    assert [one["source"]["id"] for one in state["citations"]] == ["ferry", "bakery"]
    assert [one["number"] for one in state["citations"]] == [1, 2]
    told = [(one["asked"], one["action"], one["scores"]) for one in state["sub_questions"]]
    assert told == [
        ("When does the ferry leave?", "correct", [0.9]),
        ("Who runs the bakery?", "correct", [0.9]),
    ]
    assert [part["citations"][0]["number"] for part in state["sub_questions"]] == [1, 1]
    assert (state["question"], state["abstained"]) == (TWO, False)
    assert [one.id for one in state["documents"]] == ["ferry", "bakery"]
    assert state["scores"] == [0.9, 0.9]


def test_a_passage_that_answers_two_parts_is_quoted_once() -> None:
    asked = "Who runs the bakery? Where is the bakery?"
    state = build_decomposed(parts()).invoke({"question": asked})
    assert state["answer"] == f"“{SHELVES['bakery']}” [1]"
    assert len(state["citations"]) == 1
    assert [part["abstained"] for part in state["sub_questions"]] == [False, False]


def test_the_trace_has_the_nodes_of_each_part() -> None:
    graph = build_decomposed(parts())
    steps = [
        (space[0].partition(":")[0] if space else "", *update)
        for space, update in graph.stream({"question": TWO}, stream_mode="updates", subgraphs=True)
    ]
    inner = [
        ("answer_part", node) for node in ("open_run", "retrieve", "grade", "refine", "generate")
    ]
    one = [*inner, ("", "answer_part")]
    assert steps == [("", "open_run"), ("", "decompose"), *one, *one, ("", "combine")]


def test_a_follow_up_leaves_the_last_calls_to_the_answer() -> None:
    model = FakeChatModel(replies=["When does the ferry leave?", "At seven [1]."])
    chat = [HumanMessage("Is there a ferry?"), AIMessage("Yes."), HumanMessage("When does it?")]
    state = build_decomposed(parts(model=model)).invoke(
        {"messages": chat}, context=Settings(max_llm_calls=3)
    )
    assert "decompose_skipped" in kinds(state)
    assert len(model.prompts) == state["usage"]["llm_calls"] == 2


def test_a_part_that_is_not_found_is_told_and_searched_for_alone() -> None:
    searcher = FakeSearcher(hits=HITS)
    asked = "When does the ferry leave? Who is mayor?"
    state = build_decomposed(parts(searcher=searcher)).invoke({"question": asked})
    assert [one["action"] for one in state["sub_questions"]] == ["correct", "incorrect"]
    assert len(searcher.queries) == 1
    assert state["sub_questions"][1]["query"] == "mayor"
    nothing = build_decomposed(parts()).invoke({"question": asked})
    assert nothing["answer"].endswith("Who is mayor? I could not find this in the documents.")
    assert not nothing["abstained"]
    assert [part["abstained"] for part in nothing["sub_questions"]] == [False, True]
    assert any(event["detail"].startswith("part 2: ") for event in nothing["events"])


class SureOf:
    """Quotes the first strip, which is sure only where it has the word."""

    def __init__(self, word: str) -> None:
        self._word = word

    def quote(self, question: str, strips: Any) -> list[Quotation]:
        del question
        text = strips[0]["text"]
        return [Quotation(text, 0, 0.9, (0, len(text)), sure=self._word in text)]


def test_a_part_that_is_not_sure_shows_its_closest_passage() -> None:
    state = build_decomposed(parts(quoter=SureOf("bakery"))).invoke({"question": TWO})
    assert state["certainty"] == "answered"
    assert state["answer"] == (
        f"When does the ferry leave? {UNSURE_OF_PART}\n\n“{SHELVES['ferry']}” [1]\n\n"
        f"“{SHELVES['bakery']}” [2]"
    )
    assert [one["source"]["id"] for one in state["citations"]] == ["ferry", "bakery"]


def test_where_no_part_is_sure_the_closest_passages_are_shown() -> None:
    state = build_decomposed(parts(quoter=SureOf("nothing"))).invoke({"question": TWO})
    assert (state["certainty"], state["abstained"]) == ("unsure", True)
    assert state["answer"] == f"{UNSURE}\n\n“{SHELVES['ferry']}” [1]\n\n“{SHELVES['bakery']}” [2]"
    assert [one["source"]["id"] for one in state["citations"]] == ["ferry", "bakery"]
    assert kinds(state)[-1] == "abstained"


def test_where_no_part_is_found_the_run_abstains() -> None:
    state = build_decomposed(parts()).invoke({"question": "Who is mayor? Who is king?"})
    assert state["abstained"]
    assert state["answer"] == "I could not find this in the documents."
    assert state["citations"] == []


def test_a_question_of_one_part_is_answered_as_by_the_plain_graph() -> None:
    asked = {"question": "When does the ferry leave?"}
    whole, plain = (build(parts()).invoke(asked) for build in (build_decomposed, build_crag))
    assert (len(whole.pop("sub_questions")), plain.pop("sub_questions")) == (1, [])
    assert whole == plain
    chat = {"messages": [HumanMessage(asked["question"], id="1")]}
    said = build_decomposed(parts()).invoke(chat)["messages"]
    assert [type(one) for one in said] == [HumanMessage, AIMessage]
    assert said[1].additional_kwargs["citations"] == plain["citations"]


def test_a_model_plans_fills_in_answers_and_joins_them() -> None:
    model = FakeChatModel(
        replies=[PLAN, "Edda Holm [1].", "In Merrow [1].", "Edda Holm [1], born in Merrow [2]."]
    )
    given = parts(model=model)
    asked = "Where was the baker of Orrin born?"
    state = asyncio.run(build_decomposed(given).ainvoke({"question": asked}))
    assert given.retriever.asked == ["Who runs the bakery?", "Where was Edda Holm born?"]  # type: ignore[attr-defined]
    assert state["answer"] == "Edda Holm [1], born in Merrow [2]."
    assert [one["source"]["id"] for one in state["citations"]] == ["bakery", "born"]
    assert state["usage"]["llm_calls"] == len(model.prompts) == 4
    joining = model.prompts[-1][-1].text
    assert '<part number="2">\nWhere was Edda Holm born?\nIn Merrow.\n</part>' in joining
    assert SHELVES["bakery"] in joining
    assert SHELVES["born"] in joining


@pytest.mark.parametrize("reply", ["I cannot.", '{"questions": []}', ""])
def test_a_plan_that_cannot_be_used_leaves_the_question_whole(reply: str) -> None:
    model = FakeChatModel(replies=[reply, "At seven [1]."])
    state = build_decomposed(parts(model=model)).invoke({"question": TWO})
    assert state["answer"] == "At seven [1]."
    assert kinds(state) == ["decompose_failed"]
    assert state["events"][0]["fallback"] == "ask the question whole"
    assert [one["question"] for one in state["sub_questions"]] == [TWO]
    assert state["usage"]["llm_calls"] == 2


@pytest.mark.parametrize("last", ["", "Uncited.", "I could not find this in the documents."])
def test_answers_that_the_model_does_not_join_follow_one_another(last: str) -> None:
    model = FakeChatModel(replies=[PLAN, "Edda Holm [1].", "In Merrow [1].", last])
    state = build_decomposed(parts(model=model)).invoke({"question": TWO})
    assert state["answer"] == "Edda Holm [1].\n\nIn Merrow [2]."
    assert kinds(state) == ["combine_failed"]
    assert [one["number"] for one in state["citations"]] == [1, 2]


def test_model_calls_are_bounded_for_all_parts_together() -> None:
    for most in range(9):
        model = FakeChatModel(replies=[PLAN, *["Edda Holm [1]."] * 20])
        settings = Settings(max_llm_calls=most, sub_questions=2)
        given = parts(model=model, searcher=FakeSearcher(hits=HITS))
        state = build_decomposed(given).invoke({"question": TWO}, context=settings)
        assert state["usage"].get("llm_calls", 0) == len(model.prompts) <= most
        assert ("decompose_skipped" in kinds(state)) == (most < 3)
        assert not state["abstained"]


@pytest.mark.parametrize(("most", "searched"), [(0, 0), (1, 1), (2, 2), (8, 2)])
def test_searches_are_bounded_for_all_parts_together(most: int, searched: int) -> None:
    searcher = FakeSearcher(hits=HITS)
    asked = {"question": "Who is mayor? When does the ferry leave? Who is king?"}
    settings = Settings(max_searches=most)
    state = build_decomposed(parts(searcher=searcher)).invoke(asked, context=settings)
    assert state["usage"].get("searches", 0) == len(searcher.queries) == searched
    refused = [one for one in state["events"] if one["kind"] == "budget_exhausted"]
    assert len(refused) == 2 - searched
    assert all("no search of `max_searches` is left" in one["detail"] for one in refused)


def test_no_question_is_split_where_that_is_switched_off() -> None:
    for settings in (Settings(sub_questions=1), Settings(task="popqa")):
        state = build_decomposed(parts()).invoke({"question": TWO}, context=settings)
        assert len(state["sub_questions"]) == 1


def test_a_follow_up_is_completed_before_it_is_split() -> None:
    model = FakeChatModel(
        replies=["Who runs the bakery?", PLAN, "Edda Holm [1].", "In Merrow [1].", "Both [1][2]."]
    )
    chat = [HumanMessage("Is there a bakery?"), AIMessage("Yes."), HumanMessage("Who runs it?")]
    state = build_decomposed(parts(model=model)).invoke({"messages": chat})
    assert state["question"] == "Who runs the bakery?"
    assert state["answer"] == "Both [1][2]."
    assert state["messages"][-1].text == "Both [1][2]."
    assert state["usage"]["llm_calls"] == 5


def test_a_follow_up_behind_the_question_before_is_taken_as_by_the_plain_graph() -> None:
    before = [HumanMessage("When does the ferry leave?"), AIMessage(f"“{SHELVES['ferry']}” [1]")]
    asked: Any = {"messages": [*before, HumanMessage("And what about the harbour?")]}
    plain, state = (build(parts()).invoke(asked) for build in (build_crag, build_decomposed))
    assert state["question"] == "When does the ferry leave? And what about the harbour?"
    assert [part["question"] for part in state["sub_questions"]] == [state["question"]]
    for name in ("answer", "certainty", "citations", "events"):
        assert state[name] == plain[name]
    assert state["certainty"] == "unsure"
    assert [one.text for one in state["messages"][2:]] == [
        asked["messages"][2].text,
        plain["answer"],
    ]


def test_a_thread_forgets_the_parts_of_the_last_question() -> None:
    graph = build_decomposed(parts(), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({"question": TWO}, config)
    state = graph.invoke({"question": "Where was Edda born?"}, config)
    assert [one["question"] for one in state["sub_questions"]] == ["Where was Edda born?"]
    assert [one["source"]["id"] for one in state["citations"]] == ["born"]


def test_a_human_is_asked_for_each_part_that_would_search() -> None:
    searcher = FakeSearcher(hits=HITS)
    graph = build_decomposed(parts(searcher=searcher), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    settings = Settings(confirm_web=True)
    asked = "Who is mayor? Who is king?"
    state = graph.invoke({"question": asked}, config, context=settings)
    assert state["__interrupt__"][0].value["query"] == "mayor"
    state = graph.invoke(Command(resume={"query": "mayor of Orrin"}), config, context=settings)
    assert state["__interrupt__"][0].value["query"] == "king"
    state = graph.invoke(Command(resume="refuse"), config, context=settings)
    assert "__interrupt__" not in state
    assert searcher.queries == ["mayor of Orrin"]
    assert [one["query"] for one in state["sub_questions"]] == ["mayor of Orrin", "king"]


def test_both_parts_are_quoted_with_the_embedded_default() -> None:
    evaluator = load_evaluator()
    given = parts(evaluator=evaluator, quoter=ExtractiveAnswerer(evaluator, threshold=0.5))
    asked = "When does the ferry to Orrin leave? Where was Edda Holm born?"
    state = build_decomposed(given).invoke({"question": asked})
    assert state["answer"] == f"“{SHELVES['ferry']}” [1]\n\n“{SHELVES['born']}” [2]"


def test_a_model_that_fails_leaves_the_question_whole_and_quotes() -> None:
    given = parts(model=FakeChatModel(error=RuntimeError("down")))
    state = build_decomposed(given).invoke({"question": "When does the ferry leave?"})
    assert state["answer"] == f"“{SHELVES['ferry']}” [1]"
    assert kinds(state) == ["decompose_failed", "model_failed"]

"""`crag.open`: ask from a Python program."""

import asyncio
import shutil
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

import crag
from crag.api import Answer, Token
from crag.errors import CragError, IndexNotFoundError, QuestionError, SettingsError
from crag.graph_registry import GRAPHS
from crag.parts import Parts
from crag.settings import Settings
from crag.testing import FakeChatModel, FakeEvaluator, FakeReflection, FakeRetriever
from tests import commands
from tests.graph.reflective import says

QUESTION = "Who wrote the first program?"
WRITTEN = "Ada Lovelace did [1]."


class Streamed(TypedDict):
    """The state of a program that asks within a graph of its own."""

    pieces: list[Token | Answer]


@pytest.fixture
def parts() -> Parts:
    shelf = [Document("Ada Lovelace wrote the first program."), Document("A kettle boils water.")]
    return Parts(
        retriever=FakeRetriever(documents=shelf),
        evaluator=FakeEvaluator({"Ada": 0.9}),
        model=FakeChatModel(replies=[WRITTEN] * 9),
        reflection=FakeReflection(says),
    )


def test_an_answer_has_what_it_rests_on(parts: Parts) -> None:
    answer = crag.open(parts=parts).ask(QUESTION)
    assert str(answer) == answer.answer == WRITTEN
    assert (answer.question, answer.outcome, answer.action) == (QUESTION, "answered", "correct")
    assert [citation["number"] for citation in answer.citations] == [1]
    assert [strip["kept"] for strip in answer.strips] == [True, False]
    assert answer.events == []
    assert answer.usage["llm_calls"] == 1
    assert [one.metadata["score"] for one in answer.state["documents"]] == [0.9, -1.0]


def test_a_model_is_checked_by_the_packaged_parts_where_none_are_given(parts: Parts) -> None:
    model = FakeChatModel(replies=["It was Charles Babbage in 1822 [1]."])
    asked = crag.open(parts=Parts(retriever=parts.retriever, model=model)).ask(QUESTION)
    assert str(asked) == "“Ada Lovelace wrote the first program.” [1]"


@pytest.mark.parametrize("method", GRAPHS)
def test_every_graph_answers_alike_in_all_four_ways(method: str, parts: Parts) -> None:
    documents = crag.open(parts=parts, method=method)

    async def awaited() -> tuple[Answer, list[Token | Answer]]:
        asked = await documents.aask(QUESTION)
        return asked, [piece async for piece in documents.astream(QUESTION)]

    streamed = list(documents.stream(QUESTION))
    asked, pieces = asyncio.run(awaited())
    last = [documents.ask(QUESTION), asked, streamed[-1], pieces[-1]]
    assert [one.answer for one in last if isinstance(one, Answer)] == [last[0].answer] * 4
    written = ["".join(one.text for one in run if isinstance(one, Token))
               for run in (streamed, pieces)]  # fmt: skip
    assert written == [WRITTEN if method in {"crag", "rag"} else ""] * 2


@pytest.mark.parametrize("method", GRAPHS)
def test_every_graph_streams_within_a_node_of_another_graph(method: str, parts: Parts) -> None:
    documents = crag.open(parts=parts, method=method)
    alone = list(documents.stream(QUESTION))

    def streams(_: object) -> dict[str, list[Token | Answer]]:
        return {"pieces": list(documents.stream(QUESTION))}

    async def streams_too(_: object) -> dict[str, list[Token | Answer]]:
        return {"pieces": [piece async for piece in documents.astream(QUESTION)]}

    graph = StateGraph(Streamed)
    graph.add_node("ask", RunnableLambda(streams, streams_too))
    graph.add_edge(START, "ask")
    outer, given = graph.compile(), Streamed(pieces=[])
    for state in (outer.invoke(given), asyncio.run(outer.ainvoke(given))):
        kinds = [type(piece) for piece in state["pieces"]]
        assert kinds == [type(piece) for piece in alone]
        assert str(state["pieces"][-1]) == str(alone[-1])


def test_settings_of_a_question_change_those_of_the_documents(parts: Parts) -> None:
    documents = crag.open(parts=parts, settings={"upper": 0.95, "lower": -0.5})
    assert documents.ask(QUESTION).action == "ambiguous"
    assert documents.ask(QUESTION, settings={"upper": 0.5}).action == "correct"
    assert documents.ask(QUESTION, settings=Settings(lower=0.92)).action == "incorrect"


def test_an_index_is_opened_with_the_parts_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orrin.md").write_text("# Orrin\n\nThe ferry to Orrin leaves at seven.\n")
    commands.crag("index", "orrin.md", "--index", "index", folder=tmp_path)
    monkeypatch.chdir(tmp_path)
    for place in ("index", tmp_path / "index"):
        answer = crag.open(place).ask("When does the ferry to Orrin leave?")
        assert "leaves at seven" in answer.answer
        assert answer.citations[0]["source"]["url"].endswith("orrin.md")
    shutil.rmtree("index")
    with pytest.raises(IndexNotFoundError, match="Build it with"):
        crag.open("index")


def test_what_cannot_be_asked_is_refused(parts: Parts) -> None:
    with pytest.raises(CragError, match="only one of them"):
        crag.open("index", parts=parts)
    with pytest.raises(CragError, match="a text or a path, not FakeRetriever: name retriever="):
        crag.open(parts.retriever)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="'method' cannot be 'crog'"):
        crag.open(parts=parts, method="crog")
    with pytest.raises(SettingsError, match="'kk'"):
        crag.open(parts=parts, settings={"kk": 1})
    with pytest.raises(SettingsError, match=r"'settings' cannot be \['k'\]: Input"):
        crag.open(parts=parts, settings=["k"])  # type: ignore[arg-type]
    documents = crag.open(parts=parts)
    with pytest.raises(QuestionError, match="empty"):
        documents.ask(" ")
    with pytest.raises(SettingsError, match="'confirm_web' cannot be True: nobody can be asked"):
        documents.ask(QUESTION, settings={"confirm_web": True})


@pytest.mark.parametrize(
    "question", [{"question": QUESTION}, None, 7, b"Who?", HumanMessage(QUESTION)]
)
def test_what_is_neither_text_nor_messages_is_no_question(parts: Parts, question: object) -> None:
    model = parts.model
    assert isinstance(model, FakeChatModel)
    with pytest.raises(QuestionError, match="question must be text or a list of messages, not"):
        crag.open(parts=parts).ask(question)  # type: ignore[arg-type]
    assert model.prompts == []

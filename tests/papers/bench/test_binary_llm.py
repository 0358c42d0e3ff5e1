"""The peer that asks about each document in turn, and goes to the web for any "no"."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.documents import Document

from crag.errors import CragError
from crag.papers.bench.baselines import build_binary_llm
from crag.papers.bench.units import Unit
from crag.parts import Parts
from crag.state import strips_of_kind
from crag.testing import FakeChatModel, FakeEvaluator, FakeQuoter, FakeRetriever, FakeSearcher
from tests.papers.bench.chat_server import ChatServer, chatting
from tests.papers.bench.runs import HITS, answerer, examples, variant

YES = Document("The barn is indeed red.", metadata={"title": "The barn"})
NO = Document("Paint is dear.", metadata={"title": "Paint"})


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chatting() as running:
        yield running


def asked(*documents: Document, replies: list[str]) -> tuple[dict[str, object], FakeSearcher]:
    searcher = FakeSearcher(HITS)
    parts = Parts(
        retriever=FakeRetriever(documents=list(documents)),
        evaluator=FakeEvaluator(),
        model=FakeChatModel(replies=replies),
        searcher=searcher,
    )
    state = build_binary_llm(parts).invoke({"question": "What colour is the barn?"})
    return state, searcher


def test_all_yes_stays_with_the_documents() -> None:
    state, searcher = asked(YES, YES, replies=["yes", "Yes.", "It is red [1]."])
    assert searcher.queries == []
    assert state["usage"]["llm_calls"] == 3
    assert [strip["text"] for strip in strips_of_kind(state, "document")] == [YES.page_content] * 2


def test_one_no_drops_the_document_and_searches_for_the_rewritten_question() -> None:
    state, searcher = asked(YES, NO, replies=["yes", "no", "barn, colour", "It is red [2]."])
    assert searcher.queries == ["barn, colour"]
    assert state["usage"]["llm_calls"] == 4
    assert [strip["text"] for strip in strips_of_kind(state, "document")] == [YES.page_content]
    assert [strip["text"] for strip in strips_of_kind(state, "web")] == [HITS[0].snippet]
    assert state["answer"] == "It is red [2]."


def test_documents_are_asked_about_one_after_the_other(tmp_path: Path, server: ChatServer) -> None:
    server.seconds = 0.02
    unit = Unit(variant("binary_llm"), examples(tmp_path)[0], {}, 0)
    row = asyncio.run(answerer(server.url).answer(unit))
    assert server.busiest == 1
    assert "indeed" in server.prompts[0]
    assert "dear" in server.prompts[1]
    assert row["seconds"] >= 4 * 0.02


def test_without_a_model_there_is_none() -> None:
    parts = Parts(retriever=FakeRetriever(), evaluator=FakeEvaluator(), quoter=FakeQuoter())
    with pytest.raises(CragError, match="binary_llm asks a chat model"):
        build_binary_llm(parts)

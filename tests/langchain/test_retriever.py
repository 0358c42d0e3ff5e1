"""A retriever that corrects another one, in the places where LangChain programs use retrievers."""

import asyncio
import logging
from typing import Any, cast

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from crag.answering.context import kept_strips
from crag.errors import SearchError
from crag.graph import build_crag
from crag.langchain import CorrectiveRetriever
from crag.parts import Hit
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeChatModel, FakeEvaluator, FakeReader, FakeRetriever, FakeSearcher

QUESTION = "Who wrote the first program?"
SCORES = {"Ada Lovelace": 0.9, "Charles Babbage": -0.2}
"""The first document of `documents` is kept, the second as well unless the threshold forbids."""


@pytest.fixture
def make(documents: list[Document], hits: list[Hit]) -> Any:
    def build(score: Any = 0.9, **replaced: Any) -> CorrectiveRetriever:
        fields: dict[str, Any] = {
            "retriever": FakeRetriever(documents=documents),
            "evaluator": FakeEvaluator(score),
            "searcher": FakeSearcher(hits),
        }
        return CorrectiveRetriever(**fields | replaced)

    return build


async def ask(retriever: BaseRetriever) -> list[Document]:
    """Return what both ways to call it find."""
    found = await asyncio.to_thread(retriever.invoke, QUESTION)
    assert await retriever.ainvoke(QUESTION) == found
    return found


async def test_correct_returns_the_kept_strips_of_the_documents(make: Any) -> None:
    found = await ask(make(SCORES, settings={"strip_threshold": 0.5}))
    assert [document.page_content for document in found] == [
        "Ada Lovelace wrote the first published program. It was for the Analytical Engine."
    ]
    assert found[0].metadata == {
        "title": "Ada Lovelace", "url": "ada.md", "source": "ada.md", "position": "line 3",
        "id": "document-1", "score": 0.9, "kind": "document", "action": "correct",
        "thresholds": {"upper": 0.5, "lower": -0.5},
    }  # fmt: skip


async def test_incorrect_returns_what_the_web_holds(make: Any) -> None:
    reader = FakeReader({"https://example.org/p": ["Ada Lovelace wrote the first program of all."]})
    scores = {"first program of all": 0.7, "notes in 1843": -0.9}
    found = await ask(make(scores, reader=reader))
    assert [(d.page_content, d.metadata["url"], d.metadata["position"]) for d in found] == [
        ("Ada Lovelace wrote the first program of all.", "https://example.org/p", "paragraph 1")
    ]
    metadata = found[0].metadata
    assert (metadata["kind"], metadata["action"], metadata["score"]) == (
        "web",
        "incorrect",
        0.7,
    )


@pytest.mark.parametrize("score", [0.9, 0.0, -0.9])
def test_it_keeps_what_the_graph_keeps_the_best_first(
    make: Any, make_parts: Any, score: float
) -> None:
    def judge(_: str, text: str) -> float:
        return min(0.99, score + len(text) / 1000)

    settings = Settings(strips_kept=2, lower=-0.95)
    found = make(judge, settings=settings).invoke(QUESTION)
    parts = make_parts(
        evaluator=FakeEvaluator(judge), model=FakeChatModel(replies=["first program"])
    )
    state = build_crag(parts).invoke({"question": QUESTION}, context=settings)
    kept = kept_strips(cast("State", state))
    assert {document.page_content for document in found} == {strip["text"] for strip in kept}
    scores = [document.metadata["score"] for document in found]
    assert scores == sorted(scores, reverse=True)
    assert kept


def test_what_scores_as_irrelevant_is_not_returned(make: Any) -> None:
    settings = {"upper": 0.5, "lower": 0.0, "strip_threshold": -0.5}
    found = make(SCORES, settings=settings).invoke(QUESTION)
    assert [document.metadata["score"] for document in found] == [0.9]  # The other one has -0.2.


def test_other_metadata_of_a_document_stay_with_its_strips(make: Any) -> None:
    metadata = {"source": "ada.md", "page": 3, "score": "the store's own"}
    documents = [
        Document("Ada Lovelace wrote the first program.", metadata={"page": 1}),
        Document("She signed it with her initials.", metadata=metadata),
    ]
    found = make(retriever=FakeRetriever(documents=documents)).invoke(QUESTION)
    assert [document.metadata["page"] for document in found] == [1, 3]
    assert [document.metadata["source"] for document in found] == ["", "ada.md"]
    assert [document.metadata["score"] for document in found] == [0.9, 0.9]
    assert documents[1].metadata == metadata  # What was retrieved is not changed.


@pytest.mark.parametrize("place", [{}, {"position": "line 3", "lines": "3 4"}])
def test_strips_of_two_pages_of_a_book_have_the_metadata_of_their_own(
    make: Any, place: Any
) -> None:
    book = {"id": "book", "source": "book.pdf", "title": "Ada"} | place
    pages = [
        Document(
            f"{first} wrote the first program. Was it run?\nIt was long.",
            metadata={**book, "page": page},
        )
        for page, first in enumerate(("Ada Lovelace", "Charles Babbage"), start=1)
    ]
    found = make(retriever=FakeRetriever(documents=pages)).invoke(QUESTION)
    told = {("Ada L" in one.page_content, one.metadata["page"]) for one in found}
    assert told >= {(True, 1), (False, 2)}
    assert (True, 2) not in told


async def test_a_failure_outside_leaves_an_empty_list_and_a_reason_in_the_log(
    make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    error = SearchError("Engine", "quota", "the quota is spent")
    retriever = make(score=-0.9, searcher=FakeSearcher(error=error))
    with caplog.at_level(logging.WARNING, "crag.langchain"):
        assert await ask(retriever) == []
    told = [record.message for record in caplog.records if record.name == "crag.langchain"]
    assert len(told) == 2
    assert told[0] == told[1]
    assert told[0].startswith("no knowledge passes after the action incorrect; ")
    assert "search_failed: SearchError: Engine: the quota is spent" in told[0]


@pytest.mark.parametrize(
    ("own", "settings", "asked"),
    [({"k": 2}, {}, 2), ({"k": 2}, {"k": 3}, 3), ({}, {}, 10), ({"k": 2}, {"strips_kept": 9}, 2)],
)
def test_a_vector_store_is_asked_for_its_own_k_unless_the_settings_say_another(
    own: dict[str, Any], settings: dict[str, Any], asked: int
) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(f"This is text number {number}.") for number in range(20)])
    retriever = CorrectiveRetriever(
        retriever=store.as_retriever(search_kwargs=own),
        evaluator=FakeEvaluator(),
        settings=Settings(**settings),
    )
    assert len(retriever.correct(QUESTION)["documents"]) == asked

"""Self-RAG as a graph: which nodes run, what they cost, and that all ways to call agree."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from crag.parts import Candidate, Passage, Prefix
from crag.reflection.testing import fake_candidate, fake_decision
from crag.testing import FakeRetriever
from tests.graph.reflective import (
    QUESTION,
    WAYS,
    build_self_crag,
    build_self_rag,
    goes_on,
    kinds,
    reflecting,
    state_by,
    steps,
)

SHORT = [
    "open_run",
    "decide",
    "retrieve",
    "prepare_passages",
    "reflect:short_form",
    "reflect:finish_reflection",
    "reflect",
]
DIRECT = ["open_run", "decide", "reflect:short_form", "reflect:finish_reflection", "reflect"]
LONG = [*SHORT[:4], "reflect:beam_step", "reflect:beam_step", *SHORT[-2:]]
DIRECT_LONG = ["open_run", "decide", "reflect:beam_step", *SHORT[-2:]]
UNSURE = fake_decision(0.3)


@pytest.mark.parametrize(
    ("settings", "decision", "order", "decisions"),
    [
        ({}, UNSURE, SHORT, 1),
        ({"delta": 0.3}, UNSURE, DIRECT, 1),
        ({"delta": 0.29}, UNSURE, SHORT, 1),
        ({"retrieval_mode": "always"}, fake_decision(0.0), SHORT, 0),
        ({"retrieval_mode": "never"}, fake_decision(1.0), DIRECT, 0),
        ({"retrieval_mode": "hard"}, fake_decision(0.51), SHORT, 1),
        ({"retrieval_mode": "hard"}, fake_decision(0.49), DIRECT, 1),
        ({"retrieval_mode": "hard", "delta": 0.0}, fake_decision(0.49), DIRECT, 1),
    ],
)
def test_the_decision_chooses_the_path(
    make_parts: Any, settings: Any, decision: Any, order: list[str], decisions: int
) -> None:
    parts = reflecting(make_parts, otherwise=decision)
    assert steps(build_self_rag(parts), **settings) == order
    state = build_self_rag(parts).invoke(QUESTION, context=settings)
    assert state["usage"] == {"llm_calls": 1 + decisions}
    assert len(parts.reflection.batches) == 2
    assert len(parts.retriever.questions) == (2 if order is SHORT else 0)
    assert state["reflection"]["choices"][0]["action"] == (
        "retrieve" if order is SHORT else "no_retrieve"
    )


@pytest.mark.parametrize(
    ("settings", "order", "calls"),
    [
        # A round each for two sentences, and before each of them a decision.
        ({}, LONG, 4),
        ({"retrieval_mode": "always"}, LONG, 2),
        ({"retrieval_mode": "hard"}, LONG, 3),
        ({"retrieval_mode": "never"}, DIRECT_LONG, 1),
    ],
)
def test_the_long_form_shows_and_costs_its_rounds(
    make_parts: Any, settings: Any, order: list[str], calls: int
) -> None:
    parts = reflecting(make_parts, goes_on)
    assert steps(build_self_rag(parts), form="long", **settings) == order
    state = build_self_rag(parts).invoke(QUESTION, context={"form": "long", **settings})
    assert state["usage"] == {"llm_calls": calls}


def test_one_batch_holds_all_hypotheses_and_passages(make_parts: Any) -> None:
    parts = reflecting(make_parts, goes_on)
    settings = {"form": "long", "retrieval_mode": "always", "beam_width": 2}
    state = build_self_rag(parts).invoke(QUESTION, context=settings)
    assert parts.reflection.batches == [2, 4]
    assert len(state["reflection"]["critiques"]) == 6


def test_every_node_writes_what_it_names(make_parts: Any) -> None:
    graph = build_self_rag(reflecting(make_parts, approximation="by rule"))
    updates = graph.stream(QUESTION, stream_mode="updates")
    _, decide, retrieve, offer, reflect = (next(iter(update.values())) for update in updates)
    assert decide["reflection"]["approximation"] == "by rule"
    assert set(retrieve) == {"documents", "events"}
    assert [p["label"] for p in offer["reflection"]["passages"]] == ["document", "document"]
    assert [p["grade"] for p in offer["reflection"]["passages"]] == ["", ""]
    assert [s["source"]["url"] for p in offer["reflection"]["passages"] for s in p["strips"]] == [
        "ada.md",
        "babbage.md",
    ]
    assert set(offer) == {"reflection"}
    chosen = [critique["chosen"] for critique in reflect["reflection"]["critiques"]]
    assert chosen == [True, False]
    assert reflect["answer"] == "Ada Lovelace wrote the first published program [1]."


def test_dynamic_retrieval_searches_for_each_segment(make_parts: Any) -> None:
    parts = reflecting(make_parts, goes_on)
    settings = {"form": "long", "segment_retrieval": "dynamic", "beam_width": 1}
    state = build_self_rag(parts).invoke(QUESTION, context=settings)
    first = "Ada Lovelace wrote the first published program."
    asked = QUESTION["question"]
    assert parts.retriever.questions == [asked, f"{asked} {first}"]
    assert len(state["reflection"]["passages"]) == 2
    static = reflecting(make_parts, goes_on)
    build_self_rag(static).invoke(QUESTION, context={**settings, "segment_retrieval": "static"})
    assert static.retriever.questions == [asked]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("build", [build_self_rag, build_self_crag])
async def test_a_later_segment_may_retrieve_where_the_first_did_not(
    make_parts: Any, way: str, build: Any
) -> None:
    def turns(prefix: Prefix, passage: Passage | None) -> Candidate:
        if passage is not None:
            return goes_on(Prefix(""), passage)
        ending: Any = "end" if prefix.answered else "retrieve"
        text = "Nothing more." if prefix.answered else "Let me see."
        return fake_candidate(text, relevance=None, support=None, utility=None, ending=ending)

    parts = reflecting(make_parts, turns, decisions={"": fake_decision(0.1)})
    state = await state_by(way, build(parts), form="long", max_depth=2)
    assert kinds(state)[-1] == "own_knowledge"
    assert "0.100 is not above 0.2" in state["events"][-1]["detail"]
    if build is build_self_rag:
        assert parts.retriever.questions == [QUESTION["question"]]
        assert state["answer"].startswith("Let me see. Ada Lovelace wrote the first")
        assert len(state["citations"]) == 1
    else:  # What prepares its knowledge has no other place to look.
        assert parts.retriever.questions == []
        assert state["answer"] == "Let me see. Nothing more."


async def test_dynamic_retrieval_asks_a_vector_store_for_k(make_parts: Any) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents([Document(f"Note {n} by Lovelace. It has {n} lines.") for n in range(9)])
    retriever = store.as_retriever(search_kwargs={"k": 2})
    settings = {"form": "long", "segment_retrieval": "dynamic", "beam_width": 1, "k": 7}
    for way in WAYS:
        parts = reflecting(make_parts, goes_on, retriever=retriever)
        await state_by(way, build_self_rag(parts), **settings)
        assert parts.reflection.batches == [7, 7]


def test_a_search_that_fails_later_leaves_what_there_is(make_parts: Any) -> None:
    class Tiring(FakeRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            self.error = ConnectionError("gone") if self.questions else None
            return super()._get_relevant_documents(query, run_manager=run_manager)

    retriever = Tiring(documents=make_parts().retriever.documents)
    graph = build_self_rag(reflecting(make_parts, goes_on, retriever=retriever))
    settings = {"form": "long", "segment_retrieval": "dynamic", "beam_width": 1}
    state = graph.invoke(QUESTION, context=settings)
    assert kinds(state).count("retrieval_failed") == 1
    assert state["events"][0]["node"] == "beam_step"
    assert state["answer"].startswith("Ada Lovelace wrote the first published program [1].")

"""Models that say nothing or never stop, and passages that are none, equal or endless."""

from typing import Any

import pytest

from crag.parts import Candidate, Passage, Prefix
from crag.reflection.testing import fake_candidate
from tests.graph.reflective import (
    QUESTION,
    WAYS,
    build_self_crag,
    build_self_rag,
    kinds,
    plain,
    reflecting,
    retrieving,
    says,
    state_by,
)

LONG: dict[str, Any] = {"form": "long", "retrieval_mode": "always"}


def endless(prefix: Prefix, passage: Passage | None) -> Candidate:
    del passage
    text = f"And then {prefix.answered.count('then')}."
    return fake_candidate(text, utility=None, ending="retrieve")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("settings", [{}, LONG, {"form": "long"}, {"retrieval_mode": "never"}])
async def test_an_empty_generation_abstains(make_parts: Any, way: str, settings: Any) -> None:
    for text in ("", "[Relevant][Utility:1]", " \n"):
        parts = reflecting(make_parts, lambda *_, text=text: fake_candidate(text))
        state = await state_by(way, build_self_rag(parts), **settings)
        assert state["outcome"] == "not_found"
        assert kinds(state) == ["abstained"]
        assert "nothing that was written" in state["events"][0]["detail"]


@pytest.mark.parametrize(
    ("settings", "detail", "rounds"),
    [
        ({"max_depth": 3}, "max_depth segments", 3),
        ({"max_depth": 64, "max_reflection_seconds": 1e-9}, "max_reflection_seconds", 1),
    ],
)
def test_a_model_that_never_stops_is_stopped(
    make_parts: Any, settings: Any, detail: str, rounds: int
) -> None:
    parts = reflecting(make_parts, endless)
    state = build_self_rag(parts).invoke(QUESTION, context={**LONG, "beam_width": 2} | settings)
    assert len(parts.reflection.batches) == rounds
    assert kinds(state) == ["reflection_limited"]
    assert detail in state["events"][0]["detail"]
    assert state["answer"].startswith("And then 0 [1].")


def test_the_greatest_depth_needs_no_higher_recursion_limit(make_parts: Any) -> None:
    parts = reflecting(make_parts, endless)
    state = build_self_crag(parts).invoke(
        QUESTION, context={**LONG, "max_depth": 64, "beam_width": 1}
    )
    assert len(parts.reflection.batches) == 64
    plain(state)


def test_a_text_that_was_cut_is_told(make_parts: Any) -> None:
    for settings in ({}, LONG):
        parts = reflecting(make_parts, lambda *_: fake_candidate("On and on", ending="length"))
        state = build_self_rag(parts).invoke(QUESTION, context=settings)
        assert kinds(state) == ["reflection_limited"]
        assert "max_new_tokens" in state["events"][0]["detail"]


@pytest.mark.parametrize("form", ["short", "long"])
@pytest.mark.parametrize(
    ("texts", "batch"),
    [
        (["One."], 1),
        (["One."] * 5, 1),
        (["One.", " One.\n", "Two."], 2),
        (["", " ", "One."], 1),
        (["word " * 40_000], 1),
    ],
)
def test_odd_passages(make_parts: Any, form: str, texts: list[str], batch: int) -> None:
    retriever = retrieving(*texts)
    for document in retriever.documents:
        document.metadata["title"] = "T"
    parts = reflecting(make_parts, says, retriever=retriever)
    state = build_self_rag(parts).invoke(QUESTION, context={"form": form})
    assert parts.reflection.batches[0] == batch
    assert len(state["reflection"]["passages"]) == batch
    assert state["outcome"] != "not_found"
    assert len(state["citations"]) == 1


def test_documents_without_text_are_no_knowledge(make_parts: Any) -> None:
    parts = reflecting(make_parts, retriever=retrieving("", " \n"))
    state = build_self_rag(parts).invoke(QUESTION)
    assert state["outcome"] == "not_found"
    assert parts.reflection.batches == []

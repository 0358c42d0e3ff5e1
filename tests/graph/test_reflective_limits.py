"""Models that say nothing or never stop, and passages that are none, equal or endless."""

from typing import Any

import pytest

from crag.parts import Candidate, Passage, Prefix
from crag.reflection.testing import fake_candidate
from tests.graph.reflective import (
    QUESTION,
    build_self_crag,
    build_self_rag,
    plain,
    reflecting,
    retrieving,
    says,
)

LONG: dict[str, Any] = {"form": "long", "retrieval_mode": "always"}


def endless(prefix: Prefix, passage: Passage | None) -> Candidate:
    del passage
    text = f"And then {prefix.answered.count('then')}."
    return fake_candidate(text, utility=None, ending="retrieve")


def test_the_greatest_depth_needs_no_higher_recursion_limit(make_parts: Any) -> None:
    parts = reflecting(make_parts, endless)
    state = build_self_crag(parts).invoke(
        QUESTION, context={**LONG, "max_depth": 64, "beam_width": 1}
    )
    assert len(parts.reflection.batches) == 64
    plain(state)


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

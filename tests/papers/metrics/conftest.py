"""Examples and rows, with only what a test says."""

from collections.abc import Callable
from typing import Any

import pytest

from crag.papers.bench.examples import Example


@pytest.fixture
def example() -> Callable[..., Example]:
    def make(task: str = "popqa", **changed: Any) -> Example:
        fields: dict[str, Any] = {
            "id": "q1",
            "task": task,
            "question": "What was Ada?",
            "answers": (("poet",),),
        }
        return Example(**fields | changed)

    return make


@pytest.fixture
def row() -> Callable[..., dict[str, Any]]:
    def make(answer: str = "", **changed: Any) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "id": "q1",
            "method": "crag",
            "outcome": "answered",
            "answer": answer,
            "action": "correct",
            "scores": [],
            "knowledge": "",
            "citations": [],
            "knowledge_words": 0,
            "retrieved_holds_answer": None,
            "knowledge_holds_answer": None,
            "usage": {},
            "seconds": 0.0,
            "retrieved": None,
        }
        return fields | changed

    return make

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crag.papers.bench.examples import Example
from crag.papers.loading.detect import load_examples

Write = Callable[..., Path]


def row(**changed: Any) -> dict[str, Any]:
    documents = [
        {"title": "Ada", "text": "Ada was a poet.", "answer": True, "url": "https://example.org/a"},
        {"title": "Bo", "text": "Bo was not.", "answer": False},
    ]
    return {
        "id": "q1",
        "question": "What was Ada?",
        "answers": ["poet"],
        "subject_title": "Ada",
        "documents": documents,
    } | changed


def test_documents_keep_their_labels(write: Write) -> None:
    example = load_examples(write([row()]), "qa").examples[0]
    assert [one.metadata["answer"] for one in example.documents] == [True, False]
    assert example.documents[0].metadata["url"] == "https://example.org/a"
    assert example.gold_titles == ("Ada",)


def test_actions_need_no_answers(write: Write) -> None:
    documents = [
        {"title": "Ada", "text": "Ada was a poet.", "label": 1},
        {"title": "Bo", "text": "Bo sang.", "label": 0},
    ]
    given = row(action="correct", documents=documents)
    del given["answers"]
    example = load_examples(write([given]), "popqa").examples[0]
    assert (example.answers, example.extra["action"]) == ((), "correct")
    assert [one.metadata["relevant"] for one in example.documents] == [True, False]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "count", "right"),
    [
        ("popqa_dev.jsonl", 100, lambda one: one.gold_titles and one.answers),
        ("actions_dev.jsonl", 236, lambda one: one.extra["action"] and len(one.documents) == 10),
        ("covidqa_dev.jsonl", 300, lambda one: one.answers and one.documents),
    ],
)
def test_development_data(
    data: Path, name: str, count: int, right: Callable[[Example], Any]
) -> None:
    loaded = load_examples(data / "qa" / name, "qa")
    assert (len(loaded.examples), loaded.refused) == (count, [])
    assert all(right(example) for example in loaded.examples)

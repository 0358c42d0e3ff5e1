"""Small files in the published formats, and examples and rows with only what a test says."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from crag.papers.bench.examples import Example

SUBJECTS = [
    ("Ada Lovelace", "mathematician", "wrote notes on the Analytical Engine"),
    ("Henry Feilden", "politician", "sat for Blackburn in the House of Commons"),
    ("Edwin Wallock", "actor", "played in sixty silent pictures"),
    ("Dominick Bellizzi", "jockey", "rode Hickory Lad to victory at Arlington"),
    ("Ole Krarup", "jurist", "taught law at Copenhagen for decades"),
    ("Bruce McDaniel", "guitarist", "led a punk band in New York cellars"),
    ("Modou Dia", "diplomat", "represented Senegal in Vienna and Moscow"),
    ("Grace Hopper", "admiral", "found a moth inside a relay computer"),
]
"""People, what they are, and a sentence that only fits them."""
QUESTIONS = [f"What is {name}'s occupation?" for name, _, _ in SUBJECTS]
PASSAGES = [f"{name} was a {work} who {deed}." for name, work, deed in SUBJECTS]


@pytest.fixture
def popqa_rows() -> list[dict[str, Any]]:
    return [
        {
            "id": 4000 + place,
            "question": QUESTIONS[place],
            "answers": [work, f"{work}s"],
            "s_wiki_title": name,
            "prop": "occupation",
            "s_pop": 50 + place,
            "ctxs": [
                {"id": f"w{place}", "title": name, "text": PASSAGES[place], "score": "1.2"},
                {"title": "Elsewhere", "text": "Something else altogether happened."},
            ],
        }
        for place, (name, work, _) in enumerate(SUBJECTS)
    ]


@pytest.fixture
def asqa_item() -> dict[str, Any]:
    return {
        "sample_id": "-42",
        "question": "Who won the cup?",
        "qa_pairs": [
            {"question": "In 1998?", "short_answers": ["France", "French team"]},
            {"question": "In 2002?", "short_answers": ["Brazil"]},
        ],
        "annotations": [
            {"long_answer": "France won in 1998, Brazil in 2002."},
            {"long_answer": "In 1998 it was France; in 2002 Brazil."},
        ],
        "answer": "France won in 1998, Brazil in 2002.",
        "docs": [{"id": "1", "title": "World Cup", "text": "France won in 1998.", "score": 0.5}],
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write rows as JSON lines (or a JSON list for a name that ends in .json)."""

    def write(rows: Sequence[Any], name: str = "data.jsonl") -> Path:
        path = tmp_path / name
        listed = (
            json.dumps(list(rows))
            if name.endswith(".json")
            else "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        )
        path.write_text(listed, encoding="utf-8")
        return path

    return write


@pytest.fixture
def crag_folder(tmp_path: Path, popqa_rows: list[dict[str, Any]]) -> Callable[..., Path]:
    """Write a folder of the CRAG repository; each argument replaces the lines of one file."""

    def make(**replaced: Sequence[str] | None) -> Path:
        internal = [f"#{passage}" for passage in PASSAGES]
        external = [f"#{name}: {name} is known as a {work}." for name, work, _ in SUBJECTS]
        files: dict[str, Sequence[str] | None] = {
            "sources": QUESTIONS,
            "correct": internal,
            "incorrect": external,
            **replaced,
        }
        folder = tmp_path / "popqa"
        (folder / "ref").mkdir(parents=True)
        rows = "".join(json.dumps(row) + "\n" for row in popqa_rows)
        (folder / "eval.jsonl").write_text(rows, encoding="utf-8")
        for name, lines in files.items():
            if lines is not None:
                path = folder / name if name == "sources" else folder / "ref" / name
                path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return folder

    return make


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

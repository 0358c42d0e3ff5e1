"""`crag train reader-data` and `crag train reader`, on a few rows."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from crag.evaluators import load_evaluator
from crag.models.model_card import read_card
from crag.papers.cli import app
from crag.papers.loading.records import read_records, write_records
from crag.papers.reader.reading_rows import ReadingRow
from crag.papers.reader.reading_sources import HELD_OUT
from tests.papers.reader.test_reader import ROWS
from tests.reflective import written

RECIPE = {
    "start": "encoder", "frozen_layers": 4, "batch_size": 8, "learning_rate": 1e-3,
    "warmup_steps": 1, "max_length": 64,
}  # fmt: skip
TEXT = "The mill was built in 1700. It burned in 1810. Ann Miller owned it then."
PASSAGE = {"title": "Old Mill", "text": TEXT}


def call(*arguments: object) -> dict[str, Any]:
    given = ["train", *map(str, arguments), "--json"]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_rows_become_a_reader_that_the_product_loads(tmp_path: Path) -> None:
    write_records(tmp_path / "rows.jsonl", ROWS)
    dev = [
        {"question": row.question, "title": row.title, "text": row.text, "label": row.answer}
        for row in ROWS[:8]
    ]
    recipe = [word for name, value in RECIPE.items() for word in ("--set", f"{name}={value}")]
    output = tmp_path / "mine"
    told = call(
        "reader", tmp_path / "rows.jsonl", "--output", output, "--graded", 16,
        "--dev", written(tmp_path / "dev.jsonl", dev), "--licence", "CC0-1.0", *recipe,
    )  # fmt: skip
    card = read_card(output)
    assert card is not None
    assert told["card"] == card.model_dump(mode="json")
    assert (card.kind, card.data[0].pairs, card.data[0].positives) == ("reader", 32, 16)
    assert card.recipe["steps"] == (32 - 16) // 8
    assert set(card.metrics) == {"dev"}
    assert not (output / ".training").exists()
    right, wrong = ROWS[0], ROWS[1]
    scores = load_evaluator(str(output)).score(right.question, [right.text, wrong.text])
    assert scores[0] != scores[1]


@pytest.fixture
def sets(tmp_path: Path) -> Path:
    """Write one or two rows of each question set."""
    built = {"text": "1700", "start": TEXT.index("1700")}
    paragraph = PASSAGE | {"questions": [{"question": "When was it built?", "answers": [built]}]}
    other = {"title": "Old Mill", "text": "Rain fell in 1920. It was cold.", "questions": []}
    held = paragraph | {"title": HELD_OUT[0]}
    sections = [
        {"question": question, "text": text}
        for question, text in (("What is flu?", "A fever."), ("Is it rare?", "No, it is common."))
    ]
    sentences = {
        "question": "When was it built?", "answers": ["1700"],
        "documents": [
            {"title": "Old Mill", "text": "It was built in 1700.", "answer": True},
            {"title": "Old Mill", "text": "It burned.", "answer": False},
        ],
    }  # fmt: skip
    asked = {
        "question": "Who owned it?", "answers": ["Ann Miller"],
        "documents": [PASSAGE | {"gold": True, "answer": True},
                      PASSAGE | {"text": "Rain fell.", "gold": False, "answer": False}],
    }  # fmt: skip
    rows: dict[str, list[Any]] = {
        "reading/squad_train": [paragraph, other],
        "reading/squad2_unanswerable": [paragraph, held],
        "reading/policyqa": [paragraph, paragraph | {"title": "Site", "text": f"{TEXT} Ads."}],
        "reading/medquad": [{"title": "Flu", "sections": sections}] * 2,
        "reading/timeqa": [{"question": "Who owned it in 1810?", "passages": [PASSAGE]}],
        "reading/fitz": [{"question": "Why?", "label": "absent", "passages": [PASSAGE]}],
        "qa/popqa_train": [asked],
        "qa/nq_train": [asked],
        "qa/selqa_sentences": [sentences],
        "qa/qed_sentences": [sentences],
        "evaluator/train": [PASSAGE | {"question": "Who?", "label": 1, "source": "popqa"}],
    }
    for name, lines in rows.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        written(tmp_path / f"{name}.jsonl", lines)
    return tmp_path


def test_question_sets_become_rows_with_what_they_know(sets: Path) -> None:
    output = sets / "rows.jsonl"
    told = call("reader-data", sets, "--output", output)
    rows = read_records(output, ReadingRow)
    assert told["rows"] == len(rows) == sum(told["sources"].values())
    assert {"squad", "squad_removed", "squad2", "medquad", "timeqa_other", "fitz", "popqa", "nq",
            "selqa", "selqa_removed", "qed", "entities"} <= set(told["sources"])  # fmt: skip
    (right,) = [row for row in rows if row.source == "squad"]
    assert right.span is not None
    assert right.text[slice(*right.span)] == "1700"
    assert all("1700" not in row.text for row in rows if row.source == "squad_removed")
    assert {row.title for row in rows if row.source == "squad2"} <= {"Old Mill", ""}
    assert all(row.answer is None for row in rows if row.source == "entities")
    call("reader-data", sets, "--output", sets / "again.jsonl")
    assert (sets / "again.jsonl").read_text() == output.read_text()
    mixed = sets / "mixed.jsonl"
    assert call("reader-data", sets, "--with", output, "--most", 3, "--output", mixed)[
        "rows"
    ] == 3 + len(rows)

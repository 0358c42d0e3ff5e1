"""`crag train` of evaluators and readers, with tiny models."""

from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crag.evaluators import load_evaluator
from crag.models.model_card import read_card
from crag.papers.cli import app
from crag.papers.evaluator.pairs import Pair
from crag.papers.files import read_records, write_records
from crag.papers.reader.rows import ReadingRow
from crag.papers.training import WORK
from tests.papers.reader.test_reader import ROWS as READING
from tests.trained import TINY_T5, articles, some_pairs, tiny_bert, written

TRAIN, OTHER = some_pairs(160)[:60], some_pairs(160)[60:100]
READER = {
    "start": "encoder", "frozen_layers": 4, "batch_size": 8, "learning_rate": 1e-3,
    "warmup_steps": 1, "max_length": 64,
}  # fmt: skip


def pairs_in(path: Path, pairs: list[Pair]) -> Path:
    return written(path, [pair._asdict() for pair in pairs])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return pairs_in(tmp_path / "train.jsonl", TRAIN)


def settings(**values: object) -> list[str]:
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def small(bert: Path) -> list[str]:
    return settings(base=bert, max_length=48, learning_rate=0.003, batch_size=8)


def call(*arguments: object) -> str:
    given = ["train", *map(str, arguments)]
    result = CliRunner().invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_pairs_become_an_evaluator(data: Path, bert: Path, tmp_path: Path) -> None:
    output = tmp_path / "made"
    shown = call(
        data, "--output", output, "--held-out", 0.25, *small(bert), "--set", "epochs=2",
    )  # fmt: skip
    assert "held out: auc " in shown
    assert f"crag calibrate DATA --evaluator {output} --write" in shown
    card = read_card(output)
    assert card is not None
    assert (card.kind, card.max_length) == ("cross_encoder", 48)
    (file,) = card.data
    assert (file.name, file.pairs, file.positives) == ("train.jsonl", 60, 30)
    assert (card.recipe["epochs"], card.recipe["seed"]) == (2, 0)
    assert set(card.metrics) == {"held out"}
    assert not (output / WORK).exists()
    scores = load_evaluator(str(output)).score(OTHER[0].question, [OTHER[0].text, OTHER[1].text])
    assert scores[0] > scores[1]


@pytest.mark.nightly
def test_a_t5_is_trained_as_in_the_paper(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "made"
    given = ["--preset", "paper", *settings(base=TINY_T5, epochs=1)]
    call(data, "--output", output, "--held-out", 0, *given)
    card = read_card(output)
    assert card is not None
    assert (card.kind, card.max_length, card.metrics) == ("t5", 512, {})
    assert len(load_evaluator(str(output)).score("Who?", ["A text.", ""])) == 2


def test_rows_become_a_reader_that_the_product_loads(tmp_path: Path) -> None:
    write_records(tmp_path / "rows.jsonl", READING)
    dev = [
        {"question": row.question, "title": row.title, "text": row.text, "label": row.answer}
        for row in READING[:8]
    ]
    output = tmp_path / "mine"
    call(
        "reader", tmp_path / "rows.jsonl", "--output", output, "--graded", 16,
        "--dev", written(tmp_path / "dev.jsonl", dev), *settings(**READER),
    )  # fmt: skip
    card = read_card(output)
    assert card is not None
    assert (card.kind, card.data[0].pairs, card.data[0].positives) == ("reader", 32, 16)
    assert card.recipe["steps"] == (32 - 16) // 8
    assert set(card.metrics) == {"dev"}
    assert not (output / WORK).exists()
    right, wrong = READING[0], READING[1]
    scores = load_evaluator(str(output)).score(right.question, [right.text, wrong.text])
    assert scores[0] != scores[1]


def test_question_sets_become_rows(tmp_path: Path) -> None:
    data = written(tmp_path / "squad.jsonl", articles(24))
    dev = written(tmp_path / "dev.jsonl", articles(24)[:4])
    output = tmp_path / "rows.jsonl"
    call("reader-data", data, "--dev", dev, "--output", output)
    rows = read_records(output, ReadingRow)
    left_out = {row["title"] for row in articles(24)[:4]}
    assert not left_out & {row.title for row in rows if row.source != "elsewhere"}
    call("reader-data", data, "--dev", dev, "--output", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == output.read_text()
    few = tmp_path / "few.jsonl"
    call("reader-data", data, "--each", 3, "--output", few)
    assert set(Counter(row.source for row in read_records(few, ReadingRow)).values()) == {3}

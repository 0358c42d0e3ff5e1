"""`crag calibrate`, of labelled data."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crag.errors import CragError
from crag.evaluators import ReaderEvaluator, load_evaluator
from crag.models.model_card import ModelCard, read_card
from crag.papers.cli import app
from crag.papers.cli.calibrate import write_thresholds
from crag.papers.evaluator.calibrate import calibrate
from crag.papers.files import write_card
from crag.testing import FakeEvaluator

runner = CliRunner()
WORDS = f"{__name__}:SharedWords"
TOPICS = (
    "kettle", "violin", "glacier", "passport", "beehive", "volcano", "compass", "saddle",
    "lantern", "orchard", "turbine", "harbour", "walnut", "sundial", "trombone", "fossil",
)  # fmt: skip


class SharedWords(FakeEvaluator):
    """Score a text by the share of the question's words that it holds."""

    def __init__(self) -> None:
        super().__init__(_shared)


def _shared(question: str, text: str) -> float:
    asked, said = (set(re.findall(r"\w+", one.lower())) for one in (question, text))
    return 2 * len(asked & said) / max(1, len(asked)) - 1


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Each topic has a question that a text answers, and one that no text does."""
    rows = []
    for topic, other in zip(TOPICS, TOPICS[1:] + TOPICS[:1], strict=True):
        question, unanswered = f"How old is the {topic}?", f"Who owns a {topic} in Peru?"
        text, beside = f"The {topic} is forty years old.", f"Rain fell on the {other} at night."
        rows += [
            {"question": question, "text": text, "label": 1},
            {"question": question, "text": beside, "label": 0},
            {"question": unanswered, "text": beside, "label": 0},
        ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def call(*arguments: object) -> str:
    given = ["calibrate", *(str(argument) for argument in arguments)]
    result = runner.invoke(app, given, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_thresholds_table_and_hint_are_shown(pairs: Path) -> None:
    shown = call(pairs, "--evaluator", WORDS)
    assert "32 questions, 48 texts, 16 relevant" in shown
    assert "judged ambiguous" in shown
    assert "use them: crag ask --set upper=" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "1.5"], "precision 1.5"),
        (["--evaluator", "t6"], "t6"),
        (["--evaluator", WORDS, "--write"], "has no card.json to write the thresholds into"),
    ],
)
def test_bad_options_are_errors_with_the_fix(pairs: Path, options: list[str], message: str) -> None:
    with pytest.raises(CragError, match=message):
        call(pairs, *options)


def test_thresholds_go_into_the_card_of_a_folder_and_leave_the_rest(
    pairs: Path, tmp_path: Path
) -> None:
    report = calibrate(FakeEvaluator({"forty": 0.8}), [pairs]).calibration
    folder = tmp_path / "evaluator"
    folder.mkdir()
    write_card(folder, ModelCard(kind="cross_encoder", base="a base", max_length=64))
    assert write_thresholds(str(folder), report) == str(folder / "card.json")
    card = read_card(folder)
    assert card is not None
    assert card.calibration == report
    assert (card.base, card.max_length) == ("a base", 64)
    assert [path.name for path in folder.iterdir()] == ["card.json"]


def test_thresholds_of_the_packaged_reader_are_an_evaluator_of_its_weights(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = calibrate(FakeEvaluator({"forty": 0.8}), [pairs]).calibration
    written = write_thresholds("default", report)
    assert written == ".crag/evaluator/card.json"
    evaluator, packaged = load_evaluator(".crag/evaluator"), ReaderEvaluator.packaged()
    assert isinstance(evaluator, ReaderEvaluator)
    assert evaluator.thresholds == report.thresholds != packaged.thresholds
    assert evaluator.quote_threshold == packaged.quote_threshold
    assert evaluator.closest_threshold == packaged.closest_threshold
    assert evaluator.model is packaged.model
    again = write_thresholds(".crag/evaluator", report.model_copy(update={"quote": 0.25}))
    assert again == written
    assert load_evaluator(".crag/evaluator").quote_threshold == 0.25  # type: ignore[attr-defined]

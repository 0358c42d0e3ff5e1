"""Calibration from files to a report and the entry of a card."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crag.errors import TrainingError
from crag.models.model_card import Calibration, ModelCard
from crag.papers.evaluator.calibrate import Report, calibrate
from crag.papers.evaluator.thresholds import Aim
from crag.testing import FakeEvaluator

TEXTS = 5
Made = tuple[Path, FakeEvaluator]


def write_rows(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    """Write labelled pairs and an evaluator that knows `telling` of the labels."""

    def made(questions: int = 120, telling: float = 1.0, shifted: float = 0.0) -> Made:
        rng = np.random.default_rng(7)
        answerable = rng.random(questions) < 0.8
        labels = (rng.random((questions, TEXTS)) < 0.4) & answerable[:, None]
        noise = rng.normal(scale=0.25, size=labels.shape)
        scores = np.clip(telling * 0.8 * (labels - 0.5) + noise + shifted, -1, 1)
        known, rows = {}, []
        for (q, t), label in np.ndenumerate(labels):
            text = f"[{q}-{t}] words"
            known[f"T // {text}"] = float(scores[q, t])
            row = {"question": f"question {q}", "title": "T", "text": text, "label": int(label)}
            rows.append(row)
        path = write_rows(tmp_path / "pairs.jsonl", rows)
        return path, FakeEvaluator(lambda _, text: known[text])

    return made


@pytest.fixture
def report(make: Callable[..., Made]) -> Report:
    path, evaluator = make()
    return calibrate(evaluator, [path], resamples=50)


def test_it_scores_each_question_once_and_tells_how_far_it_is(make: Callable[..., Made]) -> None:
    path, evaluator = make(questions=40)
    seen: list[tuple[int, int, str]] = []
    aim = Aim(precision=0.7)
    calibrate(
        evaluator, [path], aim=aim, resamples=5, progress=lambda *told: seen.append(told)
    )  # fmt: skip
    assert len(evaluator.calls) == 40
    assert evaluator.calls[0][1] == [f"T // [0-{n}] words" for n in range(TEXTS)]
    assert seen[-1] == (39, 40, "question 39")


def test_the_report_is_of_one_piece(report: Report) -> None:
    upper, lower = report.thresholds["upper"], report.thresholds["lower"]
    assert -1 < lower <= upper < 1
    assert report.precision.low < 0.92 <= report.precision.value < report.precision.high
    assert report.discarded.value <= 0.02
    assert sum(report.actions.values()) == pytest.approx(1)
    chosen = sum(row["correct"] for row in report.confusion.values())
    assert chosen == report.precision.of == round(report.actions["correct"] * 120)
    assert len(report.trade_off) == 9
    assert report.metrics["auc"] > 0.9
    assert report.calibration.thresholds == report.thresholds
    assert report.calibration.questions == 120
    assert report.calibration.data[0].pairs == 600
    assert report.calibration.quantiles == sorted(report.calibration.quantiles)
    assert len(report.calibration.quantiles) == 21
    assert report.shift is None
    assert report.notes == []


def test_shuffled_labels_calibrate_nothing(make: Callable[..., Made]) -> None:
    path, evaluator = make(telling=0.0)
    with pytest.raises(TrainingError, match=r"cannot calibrate: .*\(AUC\s0\.5"):
        calibrate(evaluator, [path])


@pytest.mark.parametrize(("questions", "count"), [(5, "[0-5] of 5"), (11, r"\d of 11")])
def test_few_examples_are_refused_before_anything_is_scored(
    make: Callable[..., Made], questions: int, count: str
) -> None:
    path, evaluator = make(questions=questions)
    with pytest.raises(TrainingError, match=f"{count} questions .* at least 10 are needed"):
        calibrate(evaluator, [path])
    assert evaluator.calls == []


def sets_with_actions(path: Path, last: str | None = "correct") -> Path:
    """Write 60 sets, a third of each action; ambiguous ones hold a weak text labelled 0."""
    rows: list[dict[str, object]] = []
    for n in range(60):
        action = ("correct", "ambiguous", "incorrect")[n % 3]
        documents = [
            {"text": f"{action} {n}", "label": int(action == "correct")},
            {"text": f"other {n}", "label": 0},
        ]
        rows.append({"question": f"q{n}", "action": action, "documents": documents})
    rows[0]["action"] = last
    return write_rows(path, rows)


def test_the_data_may_say_the_ideal_action(tmp_path: Path) -> None:
    path = sets_with_actions(tmp_path / "sets.jsonl")
    evaluator = FakeEvaluator({"incorrect": -0.8, "correct": 0.8, "ambiguous": 0.1})
    found = calibrate(evaluator, [path], aim=Aim(discarded=0), resamples=5)
    assert found.thresholds == pytest.approx({"upper": 0.45, "lower": -0.35})
    assert all(row[action] == 20 for action, row in found.confusion.items())


def test_of_texts_that_tie_for_the_best_all_must_be_relevant(make: Callable[..., Made]) -> None:
    path, evaluator = make()
    coarse = FakeEvaluator(lambda q, text: float(np.sign(evaluator.score(q, [text])[0])))
    with pytest.raises(TrainingError, match="no upper threshold"):
        calibrate(coarse, [path])


def carded(evaluator: FakeEvaluator, known: list[float]) -> FakeEvaluator:
    calibration = Calibration(
        upper=0.5, lower=-0.5, aim="a test", questions=9, data=[], quantiles=known
    )
    evaluator.card = ModelCard(  # type: ignore[attr-defined]
        kind="t5", base="t5-large", calibration=calibration
    )
    return evaluator


def test_shifted_scores_are_noted_and_resampled_ones_are_not(
    make: Callable[..., Made], report: Report
) -> None:
    known = report.calibration.quantiles
    path, evaluator = make(questions=100)
    alike = calibrate(carded(evaluator, known), [path], resamples=5)
    assert alike.shift is not None
    assert alike.shift < 0.1
    assert alike.notes == []
    path, evaluator = make(shifted=0.4)
    aim = Aim(precision=0.7)
    other = calibrate(carded(evaluator, known), [path], aim=aim, resamples=5)
    assert other.shift is not None
    assert other.shift > 0.3
    assert other.notes[0].startswith("domain shift: ")


def test_questions_without_relevant_text_are_missed(make: Callable[..., Made]) -> None:
    path, evaluator = make()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    usable = {row["question"] for row in rows if row["label"]}
    write_rows(path, [row for row in rows if row["question"] in usable])
    found = calibrate(evaluator, [path], resamples=5)
    assert found.notes[0].startswith("0 of")
    assert "when to choose Incorrect" in found.notes[0]

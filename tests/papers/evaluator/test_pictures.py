"""Charts of a calibration, counted by hand, and of a training run."""

from pathlib import Path
from typing import Any

import pytest

from crag.papers.evaluator.evidence import Evidence, Question, score_questions
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.pictures import (
    action_mix,
    draw_action_mix,
    draw_histogram,
    draw_precision_recall,
    draw_report,
    precision_recall,
    training_curves,
)
from crag.state import Thresholds
from crag.testing import FakeEvaluator

LIMITS = Thresholds(upper=0.5, lower=-0.5)
SCORES = {"good": 0.9, "doubtful": 0.0, "bad": -0.9}
PNG = b"\x89PNG"


@pytest.fixture
def evidence() -> Evidence:
    """Three questions: a relevant text is good, one is doubtful, and one question has none."""
    labels = [{"good": 1.0, "bad": 0.0}, {"doubtful": 1.0, "bad": 0.0}, {"bad": 0.0}]
    questions = [
        Question(
            question=f"{number}?",
            pairs=[Pair(f"{number}?", "", text, label) for text, label in texts.items()],
        )
        for number, texts in enumerate(labels)
    ]
    return score_questions(FakeEvaluator(SCORES), questions)


def test_precision_recall_and_the_action_mix_are_counted_by_hand(evidence: Evidence) -> None:
    assert precision_recall(evidence, 0.5) == (1.0, 0.5)
    assert precision_recall(evidence, -1.0) == (0.4, 1.0)
    assert precision_recall(evidence, 1.0) == (1.0, 0.0)
    best = [judged.best for judged in evidence.sets]
    thirds = dict.fromkeys(("correct", "ambiguous", "incorrect"), 1 / 3)
    assert action_mix(best, 0.5, -0.5) == pytest.approx(thirds)
    assert action_mix(best, 0.95, -1.0) == {"correct": 0, "ambiguous": 1, "incorrect": 0}


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (draw_histogram, "Scores of texts: 2 relevant, median +0.45; 3 irrelevant, median -0.90"),
        (draw_precision_recall, "At the upper threshold 0.50: precision 1.00, recall 0.50"),
        (
            draw_action_mix,
            "Of 3 questions with these thresholds: correct 33%, ambiguous 33%, incorrect 33%",
        ),
    ],
)
def test_pictures_of_evidence_say_what_they_show(draw: Any, said: str, evidence: Evidence) -> None:
    assert repr(draw(evidence, LIMITS)) == said


def test_pictures_are_written_whole(evidence: Evidence, tmp_path: Path) -> None:
    paths = draw_report(evidence, LIMITS, tmp_path)
    training_curves([{"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.0}, {"step": 2}],
                    tmp_path / "run" / "training.png")  # fmt: skip
    paths.append(tmp_path / "run" / "training.png")
    assert sorted(tmp_path.glob("*.png")) == sorted(paths[:3])
    assert all(path.read_bytes().startswith(PNG) for path in paths)

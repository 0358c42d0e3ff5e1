from typing import Any

import pytest

from crag.graph import build_crag
from crag.papers.evaluator.evidence import Evidence, Question, score_questions
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.threshold_views import (
    action_mix,
    draw_action_mix,
    draw_histogram,
    draw_precision_recall,
    precision_recall,
)
from crag.papers.views import draw_scores, walk
from crag.state import Thresholds
from crag.testing import FakeEvaluator

LIMITS = Thresholds(upper=0.5, lower=-0.5)
SCORES = {"good": 0.9, "doubtful": 0.0, "bad": -0.9}


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


def words_of(picture: Any) -> str:
    """Return all text in a picture."""
    from matplotlib.text import Text

    return "\n".join(text.get_text() for text in picture.figure.findobj(Text))


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (0.9, "Correct: the best of 2 documents scores +0.90 (upper 0.50, lower -0.50)."),
        (0.0, "Ambiguous: the best of 2 documents scores +0.00 (upper 0.50, lower -0.50)."),
        (-0.9, "Incorrect: the best of 2 documents scores -0.90 (upper 0.50, lower -0.50)."),
    ],
)
def test_scores_against_the_thresholds(make_parts: Any, score: float, said: str) -> None:
    run = walk(build_crag(make_parts({"Ada Lovelace": score})), "Who?")
    picture = draw_scores(run.state)
    assert repr(picture) == f"{said} Ada Lovelace {score:+.2f}; Charles Babbage -1.00"
    words = words_of(picture)
    assert "Charles Babbage" in words
    assert "upper\n+0.50" in words
    assert "lower\n-0.50" in words
    assert picture.png()


def test_precision_recall_and_the_action_mix_are_counted_by_hand(evidence: Evidence) -> None:
    assert precision_recall(evidence, 0.5) == (1.0, 0.5)
    assert precision_recall(evidence, -1.0) == (0.4, 1.0)
    assert precision_recall(evidence, 1.0) == (1.0, 0.0)
    best = [judged.best for judged in evidence.sets]
    thirds = dict.fromkeys(("correct", "ambiguous", "incorrect"), 1 / 3)
    assert action_mix(best, 0.5, -0.5) == pytest.approx(thirds)
    assert action_mix(best, 0.95, -1.0) == {"correct": 0, "ambiguous": 1, "incorrect": 0}


def test_pictures_of_evidence_say_what_they_show(evidence: Evidence) -> None:
    assert repr(draw_histogram(evidence, LIMITS)) == (
        "Scores of texts: 2 relevant, median +0.45; 3 irrelevant, median -0.90"
    )
    assert repr(draw_precision_recall(evidence, LIMITS)) == (
        "At the upper threshold 0.50: precision 1.00, recall 0.50"
    )
    mix = draw_action_mix(evidence, LIMITS)
    assert repr(mix) == (
        "Of 3 questions with these thresholds: correct 33%, ambiguous 33%, incorrect 33%"
    )
    assert "upper threshold (now +0.50)" in words_of(mix)
    assert all(draw(evidence, LIMITS).png() for draw in (draw_histogram, draw_action_mix))

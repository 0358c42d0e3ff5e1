"""Quality of scores."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.papers.evaluator.metrics import (
    accuracy,
    as_probability,
    auc,
    best_accuracy,
    calibration_error,
    discrimination,
    reliability,
    top1,
    wilson,
)
from crag.papers.evaluator.pairs import Pair

LABELLED = st.lists(st.tuples(st.booleans(), st.integers(-4, 4)), min_size=1, max_size=30)


def pair(question: str, label: float) -> Pair:
    return Pair(question, "", "text", label)


@settings(deadline=None)
@given(LABELLED)
def test_auc_is_the_share_of_ordered_couples_and_discrimination_agrees(
    texts: list[tuple[bool, int]],
) -> None:
    positives, scores = zip(*texts, strict=True)
    ups = [score for positive, score in texts if positive]
    downs = [score for positive, score in texts if not positive]
    if not ups or not downs:
        assert auc(positives, scores) is None
        return
    couples = [(up > down) + (up == down) / 2 for up in ups for down in downs]
    expected = sum(couples) / len(couples)
    assert auc(positives, scores) == pytest.approx(expected)
    found = discrimination(range(len(texts)), positives, scores)
    assert found.auc == pytest.approx(expected)
    assert 0 <= found.low <= found.auc + 1e-9
    assert found.auc - 1e-9 <= found.high <= 1
    assert 0 <= found.p <= 1


@settings(deadline=None)
@given(LABELLED)
def test_the_best_accuracy_is_that_of_the_best_threshold(texts: list[tuple[bool, int]]) -> None:
    positives, scores = zip(*texts, strict=True)
    every = [accuracy(positives, scores, threshold) for threshold in (*scores, 99)]
    assert best_accuracy(positives, scores) == pytest.approx(max(every))


def test_top1_counts_questions_with_both_classes_and_shares_ties() -> None:
    pairs = [
        pair("won", 1), pair("won", 0),
        pair("tied", 0.5), pair("tied", 0),
        pair("lost", 1), pair("lost", 0.2),
        pair("no relevant text", 0), pair("no relevant text", 0),
    ]  # fmt: skip
    assert top1(pairs, [0.9, 0.1, 0.5, 0.5, 0.1, 0.9, 1, 1]) == pytest.approx(1.5 / 3)
    assert top1(pairs[6:], [1, 1]) is None


def test_reliability_groups_by_probability_and_the_error_weighs_the_gaps() -> None:
    positives = [True, False, True, True]
    probabilities = [0.05, 0.05, 0.9, 1.0]
    low, high = reliability(positives, probabilities)
    assert low == (0.05, 0.5, 2)
    assert high == (pytest.approx(0.95), 1.0, 2)
    assert calibration_error(positives, probabilities) == pytest.approx((0.45 + 0.05) / 2)
    assert as_probability([-2, -1, 0, 0.5, 3]) == [0, 0, 0.5, 0.75, 1]


def test_wilson_holds_the_share_and_narrows_with_more() -> None:
    low, high = wilson(8, 10)
    assert (low, high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))
    lower, higher = wilson(800, 1000)
    assert low < lower < 0.8 < higher < high
    assert wilson(0, 0) == (0.0, 1.0)


def test_texts_of_one_question_are_no_independent_witnesses() -> None:
    rng = np.random.default_rng(3)
    of_question = rng.normal(size=20)
    scores = np.repeat(of_question, 50) + rng.normal(scale=0.01, size=1000)
    positives = np.repeat(rng.random(20) < 0.5, 50).tolist()
    alone = discrimination(range(1000), positives, scores.tolist())
    grouped = discrimination(np.repeat(np.arange(20), 50).tolist(), positives, scores.tolist())
    assert alone.auc == grouped.auc
    assert alone.p < 0.001 < grouped.p

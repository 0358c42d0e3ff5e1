"""Quality of scores."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.papers.evaluator.evidence import confusion, quality, top1
from crag.papers.evaluator.pairs import Pair

LABELLED = st.lists(st.tuples(st.booleans(), st.integers(-4, 4)), min_size=1, max_size=30)


def pair(question: str, label: float, text: str = "text") -> Pair:
    return Pair(question, "", text, label)


@settings(deadline=None)
@given(LABELLED)
def test_quality_is_what_counting_couples_and_thresholds_finds(
    texts: list[tuple[bool, int]],
) -> None:
    positives, scores = zip(*texts, strict=True)
    pairs = [pair("q", float(one), str(number)) for number, one in enumerate(positives)]
    found = quality(pairs, scores)

    right = [(score >= 0) == positive for positive, score in texts]
    assert found["accuracy"] == pytest.approx(sum(right) / len(right))
    ups = [score for positive, score in texts if positive]
    downs = [score for positive, score in texts if not positive]
    couples = [(up > down) + (up == down) / 2 for up in ups for down in downs]
    assert ("auc" in found) == bool(couples)
    if couples:
        assert found["auc"] == pytest.approx(sum(couples) / len(couples))


def test_top1_counts_questions_with_both_classes_and_shares_ties() -> None:
    pairs = [
        pair("won", 1), pair("won", 0, "b"),
        pair("tied", 0.5), pair("tied", 0, "b"),
        pair("lost", 1), pair("lost", 0.2, "b"),
        pair("no relevant text", 0), pair("no relevant text", 0, "b"),
    ]  # fmt: skip
    assert top1(pairs, [0.9, 0.1, 0.5, 0.5, 0.1, 0.9, 1, 1]) == pytest.approx(1.5 / 3)
    assert top1(pairs[6:], [1, 1]) is None


def test_confusion_counts_ideal_and_chosen_actions() -> None:
    table = confusion(["correct", "incorrect", "incorrect"], ["correct", "correct", "incorrect"])
    assert table["incorrect"] == {"correct": 1, "ambiguous": 0, "incorrect": 1}
    assert sum(map(sum, (row.values() for row in table.values()))) == 3

"""Training and development data apart from each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import TrainingError
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.splits import (
    check_apart,
    check_classes,
    check_large_enough,
    held_out,
    without_leaks,
)
from tests.trained import some_pairs

pairs_of = st.lists(
    st.builds(
        Pair,
        question=st.sampled_from(["a", "A ", "b", "c", "d e", "D  e", "f", "g"]),
        title=st.sampled_from(["", " ", "T", "t", "U", "V (x)", "W", "X", "Y"]),
        text=st.sampled_from(["x", "y"]),
        label=st.sampled_from([0.0, 0.5, 1.0]),
    ),
    max_size=12,
)
TRAIN = [Pair("Who was Ada?", "Ada", "x", 1.0), Pair("Who was Ada?", "B", "y", 0.0)]


@pytest.mark.parametrize(
    ("pair", "what"),
    [
        (Pair("who  was ada?", "C", "z", 0.0), "the same question is"),
        (Pair("Other?", "ADA", "z", 1.0), "the same title of a relevant text"),
    ],
)
def test_leaks_are_refused(pair: Pair, what: str) -> None:
    with pytest.raises(TrainingError, match=f"{what}.*ada.*--leaks drop"):
        check_apart(TRAIN, [pair])


def test_what_is_no_leak() -> None:
    apart = [Pair("Other?", "Ada", "z", 0.0), Pair("Third?", "B", "y", 1.0)]
    untitled = [Pair("a", "", "x", 1.0)], [Pair("b", "", "x", 1.0)]
    for train, development in ((TRAIN, apart), untitled, (TRAIN, [])):
        check_apart(train, development)
        assert without_leaks(train, development) == train


@given(pairs_of, pairs_of)
def test_without_leaks_nothing_leaks(train: list[Pair], development: list[Pair]) -> None:
    left = without_leaks(train, development)
    check_apart(left, development)
    assert without_leaks(left, development) == left
    assert [pair for pair in train if pair in left] == left


@given(pairs_of, st.floats(0, 0.5), st.integers(0, 9))
def test_held_out_is_apart_and_the_same_again(pairs: list[Pair], share: float, seed: int) -> None:
    train, development = held_out(pairs, share, seed)
    assert (train, development) == held_out(pairs, share, seed)
    check_apart(train, development)
    assert sorted(train + development) == sorted(pairs)
    assert len({" ".join(p.question.lower().split()) for p in development}) <= len(pairs) / 2 + 1


def test_a_question_that_goes_back_takes_its_titles_along() -> None:
    titles = ["A", "AB", "BC", "CD", "DE", "EF", "FG", "GH"]
    chain = [Pair(f"q{n}", t, "x", 1.0) for n, held in enumerate(titles) for t in held]
    for seed in range(10):
        train, development = held_out(chain, 0.5, seed)
        check_apart(train, development)
        assert without_leaks(train, development) == train


def test_a_share_is_held_out() -> None:
    pairs = some_pairs(80)
    train, development = held_out(pairs, 0.25, 1)
    assert 10 <= len(development) <= 20
    assert development != held_out(pairs, 0.25, 2)[1]
    assert held_out(pairs, 0.0, 1) == (pairs, [])
    assert [pair for pair in pairs if pair in set(train)] == train


@pytest.mark.parametrize(
    ("label", "kind", "fix"), [(1.0, "relevant", "Add irrelevant"), (0.0, "irrelevant", "Add rel")]
)
def test_one_class_is_refused(label: float, kind: str, fix: str) -> None:
    with pytest.raises(TrainingError, match=f"all 2 pairs of my data are {kind}.*{fix}"):
        check_classes([Pair("q", "", text, label) for text in "xy"], "my data")


def test_nothing_left_is_refused() -> None:
    with pytest.raises(TrainingError, match="nothing is left of my data"):
        check_classes([], "my data")


def test_a_small_development_set_cannot_stop_a_run() -> None:
    pairs = some_pairs(20)
    check_large_enough(pairs, 1)
    check_large_enough(pairs[:1], 0)
    with pytest.raises(TrainingError, match=r"at least 20 pairs; this one holds 19.*early_st"):
        check_large_enough(pairs[:19], 1)
    with pytest.raises(TrainingError, match="all 20 pairs of the development data are relevant"):
        check_large_enough([pair._replace(label=1.0) for pair in pairs], 1)

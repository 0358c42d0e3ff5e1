"""Training and development data apart from each other."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import TrainingError
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.splits import (
    check_apart,
    held_out,
    without_leaks,
)

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

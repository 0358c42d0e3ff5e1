import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.papers.bench.intervals import bootstrap
from crag.papers.bench.paired import Difference, paired_difference

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
VALUES = st.lists(NUMBERS, min_size=1, max_size=40)
SEEDS = st.integers(0, 2**32 - 1)


@given(VALUES, SEEDS)
def test_interval_lies_within_the_values_and_is_reproducible(
    values: list[float], seed: int
) -> None:
    low, high = bootstrap(values, seed, resamples=200)
    slack = 1e-9 * max(map(abs, values))
    assert min(values) - slack <= low <= high <= max(values) + slack
    assert bootstrap(values, seed, resamples=200) == (low, high)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=40), SEEDS)
def test_swapping_the_pair_mirrors_the_difference(
    pairs: list[tuple[float, float]], seed: int
) -> None:
    first, second = [one for one, _ in pairs], [two for _, two in pairs]
    forth = paired_difference(first, second, seed, resamples=200)
    back = paired_difference(second, first, seed, resamples=200)
    assert forth == pytest.approx((-back.mean, -back.high, -back.low), abs=1e-6)


@pytest.mark.parametrize(
    ("values", "said"), [([], "at least one"), ([1.0, math.nan], "finite"), ([math.inf], "finite")]
)
def test_values_without_a_mean_are_refused(values: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bootstrap(values, 0)


@pytest.mark.parametrize(
    ("low", "high", "clear"), [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False)]
)
def test_a_difference_is_clear_when_zero_lies_outside(low: float, high: float, clear: bool) -> None:
    assert Difference(0.0, low, high).clear is clear

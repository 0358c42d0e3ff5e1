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


@given(st.integers(2, 400), st.integers(0, 400), SEEDS)
def test_shares_agree_with_the_normal_approximation(size: int, right: int, seed: int) -> None:
    ones = min(right, size)
    values = [1.0] * ones + [0.0] * (size - ones)
    share = ones / size
    low, high = bootstrap(values, seed, resamples=1000)
    reach = 1.96 * math.sqrt(share * (1 - share) / size)
    grain = 0.35 * reach + 1.5 / size
    assert low == pytest.approx(share - reach, abs=grain)
    assert high == pytest.approx(share + reach, abs=grain)


def test_about_95_of_100_intervals_hold_the_true_mean() -> None:
    import numpy as np

    draws = np.random.default_rng(7).normal(3.0, 2.0, size=(200, 60))
    intervals = [bootstrap(row.tolist(), seed, resamples=500) for seed, row in enumerate(draws)]
    holding = sum(low <= 3.0 <= high for low, high in intervals)
    assert 180 <= holding <= 198


def test_pairing_takes_out_how_hard_questions_are() -> None:
    hard_and_easy = [0.0, 1.0] * 50
    better = [value + 0.1 for value in hard_and_easy]
    difference = paired_difference(better, hard_and_easy, seed=0)
    assert difference.mean == pytest.approx(0.1)
    assert difference.high - difference.low < 1e-9
    assert difference.clear
    low, high = bootstrap(better, seed=0)
    assert high - low > 0.15


def test_wider_level_gives_a_wider_interval() -> None:
    values = [float(value % 7) for value in range(50)]
    narrow, wide = bootstrap(values, 1, level=0.5), bootstrap(values, 1, level=0.99)
    assert wide.low < narrow.low < narrow.high < wide.high


def test_resamples_in_blocks_are_all_drawn() -> None:
    values = [0.0, 1.0] * 200_000
    low, high = bootstrap(values, seed=3, resamples=20)
    assert 0.497 < low < 0.5 < high < 0.503


@pytest.mark.parametrize(
    ("values", "said"), [([], "at least one"), ([1.0, math.nan], "finite"), ([math.inf], "finite")]
)
def test_values_without_a_mean_are_refused(values: list[float], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bootstrap(values, 0)


def test_unequal_lists_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="2 values cannot be paired with 1"):
        paired_difference([1.0, 2.0], [1.0], 0)


@pytest.mark.parametrize("options", [{"level": 1.0}, {"level": 0.0}, {"resamples": 0}])
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must lie between 0 and 1"):
        bootstrap([1.0], 0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high", "clear"), [(0.1, 0.2, True), (-0.2, -0.1, True), (-0.1, 0.1, False)]
)
def test_a_difference_is_clear_when_zero_lies_outside(low: float, high: float, clear: bool) -> None:
    assert Difference(0.0, low, high).clear is clear

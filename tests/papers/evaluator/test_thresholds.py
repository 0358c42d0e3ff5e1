"""Thresholds against a search through everything."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.correction.action import decide
from crag.errors import TrainingError
from crag.papers.evaluator.thresholds import FEWEST, Aim, JudgedSet, fit, trade_off
from crag.state import ACTIONS

SETS = st.lists(
    st.builds(
        lambda best, usable, right, ideal: JudgedSet(best / 8, usable and right, usable, ideal),
        st.integers(-8, 8),
        st.booleans(),
        st.booleans(),
        st.sampled_from(ACTIONS),
    ),
    min_size=1,
    max_size=40,
)
SHARES = st.sampled_from([0.0, 0.02, 0.1, 0.25, 0.5, 0.9])


def every_threshold(sets: list[JudgedSet]) -> list[float]:
    scores = sorted({one.best for one in sets})
    return [scores[0] - 1, *((a + b) / 2 for a, b in pairwise(scores)), scores[-1] + 1]


def at_or_above(sets: list[JudgedSet], threshold: float) -> list[JudgedSet]:
    return [one for one in sets if one.best >= threshold]


def precise(sets: list[JudgedSet], threshold: float, precision: float) -> bool:
    judged = at_or_above(sets, threshold)
    right = sum(one.right for one in judged)
    return len(judged) >= FEWEST and right >= precision * len(judged) - 1e-9


def discarded(sets: list[JudgedSet], threshold: float) -> int:
    return sum(one.usable and one.best < threshold for one in sets)


def by_search(sets: list[JudgedSet], aim: Aim) -> tuple[float, float] | None:
    """Read the two aims word by word, over all thresholds."""
    places = every_threshold(sets)
    uppers = [t for t in places if precise(sets, t, aim.precision)]
    if not uppers:
        return None
    allowed = aim.discarded * sum(one.usable for one in sets) + 1e-9
    upper, lower = min(uppers), max(t for t in places if discarded(sets, t) <= allowed)
    if lower <= upper:
        return upper, lower

    def wrong(threshold: float) -> int:
        judged = at_or_above(sets, threshold)
        return sum(not one.right for one in judged) + discarded(sets, threshold)

    one = min((t for t in uppers if t <= lower), key=wrong)
    return one, one


def actions(sets: list[JudgedSet], upper: float, lower: float) -> list[str]:
    return [decide([one.best], upper, lower) for one in sets]


@settings(deadline=None)
@given(SETS, st.sampled_from([0.3, 0.5, 0.75, 0.92, 1.0]), SHARES)
def test_shares_are_fitted_as_a_search_through_everything_does(
    sets: list[JudgedSet], precision: float, share: float
) -> None:
    aim = Aim(precision=precision, discarded=share)
    expected = by_search(sets, aim)
    if expected is None:
        with pytest.raises(TrainingError, match=r"no upper threshold|too few"):
            fit(sets, aim, resamples=1)
        return
    found = fit(sets, aim, resamples=1).thresholds
    assert found["lower"] <= found["upper"]
    assert actions(sets, **found) == actions(sets, *expected)


def separated(count: int, gap: float) -> list[JudgedSet]:
    bad = [unusable(-gap - n / 1000) for n in range(count)]
    return bad + [usable(gap + n / 1000) for n in range(count)]


def unusable(best: float) -> JudgedSet:
    return JudgedSet(best, right=False, usable=False, ideal="incorrect")


def usable(best: float) -> JudgedSet:
    return JudgedSet(best, right=True, usable=True, ideal="correct")


def test_an_aim_out_of_reach_names_the_best_precision_and_its_questions() -> None:
    sets = [JudgedSet(n / 100, n % 4 != 0, usable=True, ideal="correct") for n in range(100)]
    with pytest.raises(TrainingError, match=r"0\.99 .*best is 0\.818 of 11 questions, from 0\.885"):
        fit(sets, Aim(precision=0.99))
    with pytest.raises(TrainingError, match="5 questions are too few"):
        fit(sets[:5], Aim())


def test_the_trade_off_says_what_each_threshold_would_do() -> None:
    sets = separated(50, 0.4)
    rows = trade_off(sets, 9)
    assert [round(row.correct, 1) for row in rows] == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    middle = rows[4]
    assert middle == pytest.approx((0.0, 0.5, 1.0, 0.5, 0.0), abs=0.002)
    assert rows[0].precision == pytest.approx(50 / 90)
    assert rows[8].discarded == pytest.approx(0.8)

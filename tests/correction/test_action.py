"""The action trigger, over all scores and thresholds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.correction.action import branches, decide, limits
from crag.settings import Settings
from crag.state import ACTIONS

numbers = st.floats(-2, 2, allow_nan=False)
bounds = st.tuples(numbers, numbers).map(sorted)


@given(st.lists(numbers), bounds)
def test_the_best_score_decides(scores: list[float], between: list[float]) -> None:
    lower, upper = between
    action = decide(scores, upper, lower)
    assert (action == "correct") == any(score >= upper for score in scores)
    assert (action == "incorrect") == all(score < lower for score in scores)


def test_equality_counts_as_reached_and_nothing_is_incorrect() -> None:
    assert decide([0.5], 0.5, -0.5) == "correct"
    assert decide([-0.5], 0.5, -0.5) == "ambiguous"
    assert decide([], 0.5, -0.5) == "incorrect"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), (0.5, -0.5)),
        (Settings(upper=0.7), (0.7, -0.5)),
        (Settings(upper=-0.8), (-0.8, -0.8)),
        (Settings(lower=0.6), (0.6, 0.6)),
    ],
)
def test_limits_in_force(settings: Settings, expected: tuple[float, float]) -> None:
    assert limits(0.5, -0.5, settings) == expected


def test_each_action_has_its_own_branches() -> None:
    assert [branches(action) for action in ACTIONS] == [["refine"], ["refine", "web"], ["web"]]

"""Scores from hand-made tables of probabilities."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.parts import Candidate
from crag.reflection.scoring import (
    graded,
    retrieve_ratio,
    score,
    sequence_score,
)
from crag.reflection_tokens import TOKENS, UTILITY
from crag.settings import CritiqueWeights

YES, NO, MORE = "[Retrieval]", "[No Retrieval]", "[Continue to Use Evidence]"
RELEVANCE = {"[Relevant]": 0.6, "[Irrelevant]": 0.2}
SUPPORT = {
    "[Fully supported]": 0.5,
    "[Partially supported]": 0.2,
    "[No support / Contradictory]": 0.1,
}
USE: dict[str, float] = dict(zip(UTILITY, (0.0, 0.0, 0.1, 0.1, 0.6), strict=True))
CANDIDATE = Candidate("text", RELEVANCE, SUPPORT, USE, math.log(0.5), 7, "end")
REL, SUP, UTIL = 0.75, 0.75, (0.05 + 0.6) / 0.8
NUMBERS = st.one_of(
    st.floats(0, 1), st.sampled_from([0.0, 5e-324, 1e-300, math.nan, math.inf, -math.inf, -1.0])
)
TABLES = st.dictionaries(st.sampled_from(TOKENS), NUMBERS)


def test_graded_scores_are_of_normalised_probabilities() -> None:
    assert graded("relevance", RELEVANCE) == (pytest.approx(REL), [])
    assert graded("support", SUPPORT) == (pytest.approx(SUP), [])
    assert graded("utility", USE) == (pytest.approx(UTIL), [])


@pytest.mark.parametrize(("grade", "value"), list(zip(UTILITY, (-1, -0.5, 0, 0.5, 1), strict=True)))
def test_utility_runs_from_minus_one_to_one(grade: str, value: float) -> None:
    table: dict[str, float] = {token: float(token == grade) for token in UTILITY}
    assert graded("utility", table) == (value, [])


def test_a_missing_member_counts_nothing_and_is_flagged() -> None:
    assert graded("relevance", {"[Irrelevant]": 0.4}) == (0.0, ["member_missing"])
    assert graded("relevance", {"[Relevant]": 0.4}) == (1.0, ["member_missing"])
    seen = {"[Fully supported]": 0.3, "[Partially supported]": 0.1}
    assert graded("support", seen) == (pytest.approx(0.875), ["member_missing"])


@pytest.mark.parametrize("group", ["relevance", "support", "utility"])
def test_a_missing_group_is_nothing_and_flagged(group: Any) -> None:
    assert graded(group, {"Paris": 1.0}) == (0.0, [f"{group}_missing"])


@pytest.mark.parametrize(("yes", "no", "ratio"), [(0.9, 0.1, 0.9), (0.001, 0.0012, 0.454545)])
def test_the_ratio_is_of_yes_and_no(yes: float, no: float, ratio: float) -> None:
    table = {YES: yes, NO: no, MORE: 0.3}
    assert retrieve_ratio(table) == (pytest.approx(ratio, abs=1e-6), [])
    over_three, _ = retrieve_ratio(table, (NO, MORE))
    assert over_three == pytest.approx(yes / (yes + no + 0.3))


def test_ratios_with_missing_tokens() -> None:
    assert retrieve_ratio({YES: 0.3}) == (1.0, ["member_missing"])
    assert retrieve_ratio({NO: 0.3}) == (0.0, ["member_missing"])
    assert retrieve_ratio({MORE: 1.0}) == (0.5, ["retrieve_missing"])


def test_the_total_is_sequence_plus_weighted_critiques() -> None:
    scored = score(CANDIDATE, CritiqueWeights(), has_passage=True)
    assert scored[:4] == pytest.approx((REL, SUP, UTIL, 0.5))
    assert scored.total == pytest.approx(0.5 + REL + SUP + 0.5 * UTIL)
    assert scored.flags == ()
    weights = CritiqueWeights(relevance=2, support=3, utility=0, sequence=0)
    other = score(CANDIDATE, weights, has_passage=True)
    assert other.total == pytest.approx(2 * REL + 3 * SUP)


def test_without_a_passage_only_sequence_and_utility_count() -> None:
    scored = score(CANDIDATE, CritiqueWeights(), has_passage=False)
    assert (scored.relevance, scored.support) == (None, None)
    assert scored.total == pytest.approx(0.5 + 0.5 * UTIL)
    assert scored.flags == ("no_retrieval_score",)


def test_critiques_that_were_not_written_count_nothing() -> None:
    bare = CANDIDATE._replace(support=None, utility=None)
    scored = score(bare, CritiqueWeights(), has_passage=True)
    assert scored.total == pytest.approx(0.5 + REL)
    assert scored.flags == ("no_utility_token", "no_support_token")
    blind = score(CANDIDATE._replace(relevance=None), CritiqueWeights(), has_passage=True)
    assert (blind.relevance, blind.flags) == (0.0, ("relevance_missing",))


def test_sequence_scores_of_odd_candidates() -> None:
    assert sequence_score(CANDIDATE)[0] == pytest.approx(0.5)
    assert sequence_score(CANDIDATE._replace(tokens=0)) == (0.0, [])
    assert sequence_score(CANDIDATE._replace(mean_log_probability=0.3)) == (1.0, [])
    odd = CANDIDATE._replace(mean_log_probability=math.nan)
    assert sequence_score(odd) == (0.0, ["no_sequence_score"])


@given(TABLES)
def test_every_score_is_in_its_range_whatever_the_table_holds(table: dict[str, float]) -> None:
    assert 0 <= graded("relevance", table)[0] <= 1
    assert 0 <= graded("support", table)[0] <= 1
    assert -1 <= graded("utility", table)[0] <= 1
    assert 0 <= retrieve_ratio(table)[0] <= 1


@given(TABLES, TABLES, TABLES, st.floats(-50, 1), st.booleans())
def test_the_total_is_finite_and_bounded(
    relevance: dict[str, float],
    support: dict[str, float],
    utility: dict[str, float],
    mean: float,
    has_passage: bool,
) -> None:
    candidate = Candidate("x", relevance, support, utility, mean, 1, "end")
    assert -0.5 <= score(candidate, CritiqueWeights(), has_passage=has_passage).total <= 3.5

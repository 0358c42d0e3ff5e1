"""What a reading says about parts of a text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.reading import Reading, compressed, evidence_in, shares_of

READING = Reading(score=0.5, evidence="0:0 10:80 20:20", span=None)


@pytest.mark.parametrize(
    ("start", "end", "share"),
    [(0, 10, 0.0), (10, 20, 0.8), (5, 15, 0.4), (10, 30, 0.5), (20, 99, 0.2), (12, 13, 0.8)],
)
def test_evidence_of_a_range_is_the_mean_over_its_characters(
    start: int, end: int, share: float
) -> None:
    assert evidence_in(READING, start, end) == pytest.approx(share)


def test_of_the_best_part_of_a_range() -> None:
    assert evidence_in(READING, 0, 20, best=0.5) == pytest.approx(0.8)
    assert evidence_in(READING, 0, 30, best=0.5) == pytest.approx((0.8 * 10 + 0.2 * 5) / 15)
    assert evidence_in(READING, 0, 5, best=0.5) == 0


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), min_size=1, max_size=40))
def test_compressing_loses_rounding_only(pieces: list[tuple[int, float]]) -> None:
    ends = [sum(length for length, _ in pieces[: n + 1]) for n in range(len(pieces))]
    evidence = compressed(ends, [probability for _, probability in pieces])
    reading = Reading(score=0.0, evidence=evidence, span=None)
    begin = 0
    for end, (_, probability) in zip(ends, pieces, strict=True):
        assert evidence_in(reading, begin, end) == pytest.approx(probability, abs=0.0051)
        begin = end
    assert all(one != other for (_, one), (_, other) in pairwise(shares_of(reading)))

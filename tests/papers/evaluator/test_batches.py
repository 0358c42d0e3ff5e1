"""The order of a training run."""

import random

from hypothesis import given
from hypothesis import strategies as st

from crag.papers.evaluator.batches import like_length_order


def drawn(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - an order, no secret


@given(st.lists(st.integers(0, 400), min_size=1, max_size=120), st.integers(1, 20), st.integers())
def test_a_pass_sees_each_index_once_in_whole_batches(
    lengths: list[int], size: int, seed: int
) -> None:
    batched, rest = like_length_order(lengths, size, drawn(seed))
    assert sorted(batched + rest) == list(range(len(lengths)))
    assert len(batched) % size == 0
    assert len(rest) < size
    assert (batched, rest) == like_length_order(lengths, size, drawn(seed))


@given(st.integers(1, 20), st.integers())
def test_batches_hold_texts_of_like_length(size: int, seed: int) -> None:
    batched, rest = like_length_order(range(100), size, drawn(seed))
    for start in range(0, len(batched), size):
        batch = batched[start : start + size]
        assert max(batch) - min(batch) < size + len(rest)

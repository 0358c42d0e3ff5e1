"""Batches of texts of similar length."""

from collections.abc import Sequence


def length_sorted_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return the indices of `lengths` in batches of at most `size`, longest first.

    Equal lengths keep their order. The first batch is the largest, so a lack of memory shows right
    away.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [order[start : start + size] for start in range(0, len(order), size)]

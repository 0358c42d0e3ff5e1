"""Batches of texts of like length."""

from collections.abc import Sequence


def length_sorted_batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Return the indices of `lengths` in batches of at most `size`, longest first.

    Equal lengths keep their order. The first batch is the largest, so that memory that does not
    suffice shows at once.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [order[start : start + size] for start in range(0, len(order), size)]

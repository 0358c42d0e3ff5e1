"""Batches of texts of similar length."""

from collections.abc import Sequence


def length_sorted_batches(
    lengths: Sequence[int], size: int, *, padding: float | None = None
) -> list[list[int]]:
    """Return the indices of `lengths` in batches of at most `size`, longest first.

    Equal lengths keep their order. The first batch is the largest, so a lack of memory shows right
    away. `padding`, a share such as 0.1, also ends a batch when padding all rows to the longest
    would add more than that share. This pays off where a small batch costs as much per token as a
    large one, as on a CPU.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    if padding is None:
        return [order[start : start + size] for start in range(0, len(order), size)]
    batches: list[list[int]] = []
    held = 0
    for index in order:
        held += lengths[index]
        batch = batches[-1] if batches else []
        filled = (len(batch) + 1) * lengths[batch[0]] if batch else 0
        if batch and len(batch) < size and filled <= (1 + padding) * held:
            batch.append(index)
        else:
            batches.append([index])
            held = lengths[index]
    return batches

"""Batches of texts of like length."""

from collections.abc import Sequence


def length_sorted_batches(
    lengths: Sequence[int], size: int, *, padding: float | None = None
) -> list[list[int]]:
    """Return the indices of `lengths` in batches of at most `size`, longest first.

    Equal lengths keep their order. The first batch is the largest, so that memory that does not
    suffice shows at once. `padding`, a share such as 0.1, ends a batch too where filling every row
    up to its longest would add more than that to what the rows hold: worth it where a small batch
    costs as much for each token as a large one, as on a CPU.
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

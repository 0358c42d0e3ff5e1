"""The order of a training run: batches of like length, drawn by a seed."""

import random
from collections.abc import Sequence

_WINDOW = 50
"""Batches within which examples are sorted by length: enough to save padding, and few enough to
keep the order random."""


def like_length_order(
    lengths: Sequence[int], size: int, draw: random.Random
) -> tuple[list[int], list[int]]:
    """Return the indices of one pass, batch after batch, and those left over at its end."""
    shuffled = list(range(len(lengths)))
    draw.shuffle(shuffled)
    whole = len(shuffled) - len(shuffled) % size
    batches: list[list[int]] = []
    for start in range(0, whole, size * _WINDOW):
        window = shuffled[start : min(whole, start + size * _WINDOW)]
        window.sort(key=lambda index: lengths[index])
        batches += [window[place : place + size] for place in range(0, len(window), size)]
    draw.shuffle(batches)
    return [index for batch in batches for index in batch], shuffled[whole:]

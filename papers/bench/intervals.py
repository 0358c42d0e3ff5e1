"""Confidence intervals of a mean: percentile bootstrap over questions.

Questions are drawn with replacement, so the interval estimates the effect of another draw of
questions, not of another model, prompt or seed.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 5000
LEVEL = 0.95
_CELLS = 1_000_000


class Interval(NamedTuple):
    """The middle 95 % (or another level) of the resampled means."""

    low: float
    high: float


def bootstrap(
    values: Sequence[float], seed: int, *, level: float = LEVEL, resamples: int = RESAMPLES
) -> Interval:
    """Return the percentile interval of the mean; the same `seed` gives the same interval.

    A single value gives an interval of zero width, which does not mean certainty.

    Raises:
        ValueError: there is no value, one is not finite, or `level` or `resamples` is out of range.
    """
    numbers = _finite(values)
    if not 0 < level < 1 or resamples < 1:
        message = f"level {level} must lie between 0 and 1, resamples {resamples} be at least 1"
        raise ValueError(message)
    means = np.concatenate(list(_means(numbers, seed, resamples)))
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def _finite(values: Sequence[float]) -> NDArray[np.float64]:
    numbers = np.asarray(values, dtype=np.float64)
    if not numbers.size:
        raise ValueError("an interval needs at least one value")
    if not np.isfinite(numbers).all():
        raise ValueError("an interval needs finite values; leave out what does not apply")
    return numbers


def _means(
    numbers: NDArray[np.float64], seed: int, resamples: int
) -> Iterator[NDArray[np.float64]]:
    """Yield means of resamples, in blocks that fit in memory."""
    generator = np.random.default_rng(seed)
    block = max(1, _CELLS // numbers.size)
    for start in range(0, resamples, block):
        shape = (min(block, resamples - start), numbers.size)
        yield numbers[generator.integers(numbers.size, size=shape)].mean(axis=1)

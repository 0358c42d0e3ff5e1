"""Confidence intervals of the difference between two ways of answering the same questions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crag.papers.bench.intervals import LEVEL, RESAMPLES, bootstrap


class Difference(NamedTuple):
    """The mean of the differences, and its interval."""

    mean: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    seed: int,
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Difference:
    """Return the mean of `first - second` with its interval, question by question.

    Both list the same questions in the same order: pairing removes the difficulty of each question.

    Raises:
        ValueError: the lengths differ, or as `bootstrap`.
    """
    if len(first) != len(second):
        message = f"{len(first)} values cannot be paired with {len(second)}"
        raise ValueError(message)
    differences = [float(one) - float(other) for one, other in zip(first, second, strict=True)]
    interval = bootstrap(differences, seed, level=level, resamples=resamples)
    return Difference(float(np.mean(differences)), *interval)

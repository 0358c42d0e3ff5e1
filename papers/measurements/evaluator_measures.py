"""Statistics of the evaluator benchmark, and the Markdown they are shown in."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crag.papers.training.pairs import Pair, by_question

RESAMPLES = 1000
Floats = NDArray[np.float64]


def of_questions(pairs: Sequence[Pair], scores: Floats) -> Iterator[tuple[list[Pair], Floats]]:
    """Yield the pairs of each question with their scores."""
    groups = list(by_question(pairs).values())
    ends = np.cumsum([0, *map(len, groups)])
    for group, (start, end) in zip(groups, pairwise(ends), strict=True):
        yield group, scores[start:end]


def top1(pairs: Sequence[Pair], scores: Floats) -> Floats:
    """Return 1 for each question whose best text is relevant, else 0; a tie counts by its share.

    Questions without a relevant text are left out.
    """
    return np.array(
        [
            np.mean([pair.positive for pair, own in zip(group, found, strict=True) if own == best])
            for group, found in of_questions(pairs, scores)
            for best in (found.max(),)
            if any(pair.positive for pair in group)
        ]
    )


def by_chance(pairs: Sequence[Pair]) -> float:
    """Return top-1 of a choice at random."""
    return float(top1(pairs, np.zeros(len(pairs))).mean())


def auc_interval(pairs: Sequence[Pair], scores: Floats) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the AUC over questions."""
    groups = by_question(pairs).values()
    number = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    truth = np.array([pair.positive for pair in pairs])
    values, place = np.unique(scores, return_inverse=True)

    def area(draw: Floats) -> float:
        weights = draw[number]
        yes = np.bincount(place, weights * truth, minlength=len(values))
        no = np.bincount(place, weights * ~truth, minlength=len(values))
        both = float(yes.sum() * no.sum())
        return float(yes @ (no.cumsum() - no / 2)) / both if both else 0.5

    return interval(area, len(groups))


def mean_interval(values: Floats) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean."""
    return interval(lambda draw: float(draw @ values / draw.sum()), len(values))


def interval(statistic: Callable[[Floats], float], size: int) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a statistic of how often each one is drawn; seed 0."""
    shares = np.full(size, 1 / size)
    draws = np.random.default_rng(0).multinomial(size, shares, size=RESAMPLES)
    found = [statistic(draw.astype(np.float64)) for draw in draws]
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


def header(first: str, others: Sequence[str]) -> list[str]:
    """Return the first two lines of a table."""
    return [line(first, others), "|---" * (1 + len(others)) + "|"]


def line(name: str, cells: Sequence[str]) -> str:
    """Return one line of a table."""
    return "| " + " | ".join([name, *cells]) + " |"


def area(value: float | None) -> str:
    """Show an AUC."""
    return "-" if value is None else f"{value:.3f}"


def percent(share: float) -> str:
    """Show a share."""
    return f"{100 * share:.1f} %"


def size(pairs: Sequence[Pair]) -> str:
    """Say how many questions and pairs there are."""
    relevant = sum(pair.positive for pair in pairs)
    return f"{len(by_question(pairs))} questions, {len(pairs)} pairs, {relevant} relevant"

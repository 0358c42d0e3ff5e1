"""Fit the upper and lower threshold to an aim, exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crag.errors import TrainingError
from crag.state import Action, Thresholds

FEWEST = 10
"""Fewest questions judged Correct for their precision to count."""
_ROUNDING = 1e-9
Floats = NDArray[np.float64]
Interval = tuple[float, float]


class JudgedSet(NamedTuple):
    """The facts about one question's texts that the action depends on."""

    best: float
    """The largest score."""
    right: bool
    """Whether Correct would be right, because the best text is relevant."""
    usable: bool
    """Whether Incorrect would discard something, because any text is relevant."""
    ideal: Action


@dataclass(frozen=True, kw_only=True)
class Aim:
    """The aim of the thresholds, as two shares."""

    precision: float = 0.92
    """At least this share of the questions judged Correct should have a relevant best text."""
    discarded: float = 0.02
    """At most this share of the questions with a relevant text should be judged Incorrect."""

    def __post_init__(self) -> None:
        if not (0 < self.precision <= 1 and 0 <= self.discarded < 1):
            message = (
                f"precision {self.precision} and discarded {self.discarded} cannot be aimed for: "
                "precision must be above 0 and at most 1, discarded from 0 to below 1"
            )
            raise TrainingError(message)

    def __str__(self) -> str:
        return (
            f"at least {self.precision:.4g} of the questions judged Correct have a relevant best "
            f"text, and at most {self.discarded:.4g} of those with a relevant text are discarded"
        )


class Fit(NamedTuple):
    """Thresholds, and the 95 % interval of each over resampled questions."""

    thresholds: Thresholds
    upper_interval: Interval
    lower_interval: Interval


def fit(sets: Sequence[JudgedSet], aim: Aim, *, seed: int = 0, resamples: int = 1000) -> Fit:
    """Return the thresholds for `aim`, each midway between neighbouring best scores.

    `upper` is the lowest threshold with the aimed precision over at least ten questions, and
    `lower` the highest that discards no more than aimed for. If `lower` would be above `upper`,
    both become the threshold between them that meets both aims with the fewest wrong actions. The
    intervals are the fits to `resamples` (at least 1) draws.

    Raises:
        TrainingError: no threshold reaches the precision.
    """
    if len(sets) < FEWEST:
        message = f"{len(sets)} questions are too few: a precision needs at least {FEWEST}"
        raise TrainingError(message)
    grid = _Grid(sets)
    everyone = np.ones(len(sets))
    _require_precision(grid, aim, everyone)
    draws = np.random.default_rng(seed).multinomial(
        len(sets), np.full(len(sets), 1 / len(sets)), size=resamples
    )
    upper, lower = (float(grid.values[cut]) for cut in grid.cuts(aim, everyone))
    again = np.array([grid.cuts(aim, draw.astype(np.float64)) for draw in draws], dtype=np.intp)
    low, high = np.quantile(grid.values[again], [0.025, 0.975], axis=0, method="nearest")
    intervals = [(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return Fit(Thresholds(upper=upper, lower=lower), *intervals)


class TradeOff(NamedTuple):
    """The effect of one threshold as the upper one, and as the lower one; shares."""

    threshold: float
    correct: float
    """Judged Correct, of all questions."""
    precision: float
    """With a relevant best text, of those judged Correct; 1 if there are none."""
    incorrect: float
    """Judged Incorrect, of all questions."""
    discarded: float
    """Judged Incorrect, of those with a relevant text; 0 if there are none."""


def trade_off(sets: Sequence[JudgedSet], rows: int) -> list[TradeOff]:
    """Return the effect of `rows` evenly spaced thresholds, or of fewer; ascending."""
    grid, everyone = _Grid(sets), np.ones(len(sets))
    total, right, usable = grid.above(everyone), grid.above(grid.right), grid.above(grid.usable)
    aimed = len(sets) * (1 - np.arange(1, rows + 1) / (rows + 1))
    return [
        TradeOff(
            float(grid.values[cut]),
            float(total[cut] / len(sets)),
            float(right[cut] / total[cut]) if total[cut] else 1.0,
            float(1 - total[cut] / len(sets)),
            float(1 - usable[cut] / usable[0]) if usable[0] else 0.0,
        )
        for cut in sorted({int(np.abs(total - count).argmin()) for count in aimed})
    ]


class _Grid:
    """All possible thresholds: below, between and above the distinct best scores.

    The scores from the i-th on are at or above cut i.
    """

    def __init__(self, sets: Sequence[JudgedSet]) -> None:
        best = np.array([one.best for one in sets], dtype=np.float64)
        scores, self._place = np.unique(best, return_inverse=True)
        beyond = max(float(scores[-1] - scores[0]) / len(sets), 1e-3)
        edges = np.concatenate([[scores[0] - beyond], scores, [scores[-1] + beyond]])
        self.values: Floats = edges[:-1] / 2 + edges[1:] / 2
        self.right = np.array([one.right for one in sets], dtype=np.float64)
        self.usable = np.array([one.usable for one in sets], dtype=np.float64)

    def above(self, weights: Floats) -> Floats:
        """Return the weight of the sets at or above each cut."""
        of_score = np.bincount(self._place, weights, minlength=len(self.values) - 1)
        return np.append(of_score[::-1].cumsum()[::-1], 0.0)

    def cuts(self, aim: Aim, weights: Floats) -> tuple[int, int]:
        """Return the cuts of upper and lower; upper is above all scores if none qualifies."""
        total, right = self.above(weights), self.above(weights * self.right)
        usable = self.above(weights * self.usable)
        lost = usable[0] - usable
        precise = self.precise(aim.precision, total, right)
        precise[-1] |= not precise.any()
        upper = int(precise.argmax())
        lower = int(np.flatnonzero(lost <= aim.discarded * usable[0] + _ROUNDING)[-1])
        if lower <= upper:
            return upper, lower
        wrong = np.where(precise, total - right + lost, np.inf)[upper : lower + 1]
        one = upper + int(wrong.argmin())
        return one, one

    @staticmethod
    def precise(precision: float, total: Floats, right: Floats) -> NDArray[np.bool_]:
        """Return at which cuts enough sets are above, and enough of them are right."""
        enough: NDArray[np.bool_] = total >= FEWEST
        return enough & (right >= precision * total - _ROUNDING)


def _require_precision(grid: _Grid, aim: Aim, weights: Floats) -> None:
    total, right = grid.above(weights), grid.above(grid.right)
    if grid.precise(aim.precision, total, right).any():
        return
    shares = np.where(total >= FEWEST, right / np.maximum(total, 1), -1.0)
    best = int(shares.argmax())
    message = (
        f"no upper threshold makes {aim.precision:.4g} of the questions judged Correct right: the "
        f"best is {shares[best]:.3f} of {total[best]:.0f} questions, from {grid.values[best]:g} "
        "on. Aim for a lower precision, or train the evaluator on data like this"
    )
    raise TrainingError(message)

"""Fit the upper and lower threshold to an aim, exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crag.errors import TrainingError
from crag.state import ACTIONS, Action, Thresholds

FEWEST = 10
"""Fewest questions judged Correct for their precision to count."""
_ROUNDING = 1e-9
_FEWEST_DECIMALS, _MOST_DECIMALS = 3, 17
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
class Costs:
    """The cost of each kind of wrong action, in any unit; at least 0."""

    wrong: float
    """Correct for a set that is not correct."""
    needless: float
    """Ambiguous where Correct or Incorrect would do: one source more than needed."""
    discarded: float
    """Incorrect for a set with something usable in it."""

    def __post_init__(self) -> None:
        if not all(
            0 <= cost < float("inf") for cost in (self.wrong, self.needless, self.discarded)
        ):
            message = f"{self} is not a set of costs: each must be a number of at least 0"
            raise TrainingError(message)

    def matrix(self) -> Floats:
        """Return the cost of each chosen action (row) for each ideal one; both as in `ACTIONS`."""
        wrong, needless, discarded = self.wrong, self.needless, self.discarded
        rows: dict[Action, dict[Action, float]] = {
            "correct": {"correct": 0, "ambiguous": wrong, "incorrect": wrong},
            "ambiguous": {"correct": needless, "ambiguous": 0, "incorrect": needless},
            "incorrect": {"correct": discarded, "ambiguous": discarded, "incorrect": 0},
        }
        table = [[rows[chosen][ideal] for ideal in ACTIONS] for chosen in ACTIONS]
        return np.array(table, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Aim:
    """The aim of the thresholds: two shares, or costs."""

    precision: float = 0.92
    """At least this share of the questions judged Correct should have a relevant best text."""
    discarded: float = 0.02
    """At most this share of the questions with a relevant text should be judged Incorrect."""
    costs: Costs | None = None
    """If given, their sum is minimised, and the shares are ignored."""

    def __post_init__(self) -> None:
        if not (0 < self.precision <= 1 and 0 <= self.discarded < 1):
            message = (
                f"precision {self.precision} and discarded {self.discarded} cannot be aimed for: "
                "precision must be above 0 and at most 1, discarded from 0 to below 1"
            )
            raise TrainingError(message)

    def __str__(self) -> str:
        if (costs := self.costs) is not None:
            return (
                f"lowest cost, with a wrong Correct at {costs.wrong:g}, a needless Ambiguous at "
                f"{costs.needless:g} and a discarded usable set at {costs.discarded:g}"
            )
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

    With shares, `upper` is the lowest threshold with the aimed precision over at least ten
    questions, and `lower` the highest that discards no more than aimed for. If `lower` would be
    above `upper`, both become the threshold between them that meets both aims with the fewest wrong
    actions. With costs, the pair is the cheapest one; ties go to the lowest `upper`, then to the
    highest `lower`. The intervals are the fits to `resamples` (at least 1) draws.

    Raises:
        TrainingError: no threshold reaches the precision, or there are no sets.
    """
    if not sets:
        message = "there is no question to fit thresholds on"
        raise TrainingError(message)
    grid = _Grid(sets)
    everyone = np.ones(len(sets))
    if aim.costs is None:
        _require_precision(grid, aim, everyone)
    upper, lower = grid.cuts(aim, everyone)
    draws = np.random.default_rng(seed).multinomial(
        len(sets), np.full(len(sets), 1 / len(sets)), size=resamples
    )
    again = np.array([grid.cuts(aim, draw.astype(np.float64)) for draw in draws], dtype=np.intp)
    intervals = [_middle(grid.values[column]) for column in again.reshape(-1, 2).T]
    found = Thresholds(upper=grid.tidy(upper), lower=grid.tidy(lower))
    return Fit(found, intervals[0], intervals[1])


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


def trade_off(sets: Sequence[JudgedSet], rows: int | None = None) -> list[TradeOff]:
    """Return the effect of every threshold, or of `rows` evenly spaced ones; ascending.

    Returns fewer rows if best scores are equal.
    """
    grid, everyone = _Grid(sets), np.ones(len(sets))
    total, right, usable = grid.above(everyone), grid.above(grid.right), grid.above(grid.usable)
    if rows is None:
        chosen = list(range(len(total)))
    else:
        aimed = len(sets) * (1 - np.arange(1, rows + 1) / (rows + 1))
        chosen = sorted({int(np.abs(total - count).argmin()) for count in aimed})
    return [
        TradeOff(
            grid.tidy(cut),
            float(total[cut] / len(sets)),
            float(right[cut] / total[cut]) if total[cut] else 1.0,
            float(1 - total[cut] / len(sets)),
            float(1 - usable[cut] / usable[0]) if usable[0] else 0.0,
        )
        for cut in chosen
    ]


class _Grid:
    """All possible thresholds: below, between and above the distinct best scores.

    The scores from the i-th on are at or above cut i.
    """

    def __init__(self, sets: Sequence[JudgedSet]) -> None:
        best = np.array([one.best for one in sets], dtype=np.float64)
        scores, self._place = np.unique(best, return_inverse=True)
        beyond = max(float(scores[-1] - scores[0]) / len(sets), 1e-3)
        self._edges = np.concatenate([[scores[0] - beyond], scores, [scores[-1] + beyond]])
        left, right = self._edges[:-1], self._edges[1:]
        middles = left / 2 + right / 2
        self.values = np.where((left < middles) & (middles < right), middles, right)
        self.right = np.array([one.right for one in sets], dtype=np.float64)
        self.usable = np.array([one.usable for one in sets], dtype=np.float64)
        self.ideal = np.array([ACTIONS.index(one.ideal) for one in sets])

    def above(self, weights: Floats) -> Floats:
        """Return the weight of the sets at or above each cut."""
        of_score = np.bincount(self._place, weights, minlength=len(self.values) - 1)
        return np.append(of_score[::-1].cumsum()[::-1], 0.0)

    def cuts(self, aim: Aim, weights: Floats) -> tuple[int, int]:
        """Return the cuts of upper and lower; upper is above all scores if none qualifies."""
        if aim.costs is not None:
            return self._cheapest(aim.costs.matrix(), weights)
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

    def _cheapest(self, costs: Floats, weights: Floats) -> tuple[int, int]:
        """Start from all Ambiguous; sum the changes of each cut above (upper) or below (lower)."""
        upwards = self.above(weights * (costs[0] - costs[1])[self.ideal])
        downwards = self.above(weights * (costs[2] - costs[1])[self.ideal])
        below = downwards[0] - downwards
        cheapest_below = np.minimum.accumulate(below)
        upper = int((upwards + cheapest_below).argmin())
        lower = int(np.flatnonzero(below[: upper + 1] == cheapest_below[upper])[-1])
        return upper, lower

    def tidy(self, cut: int) -> float:
        """Return the cut with as few decimals as keep it between its neighbours."""
        left, right = self._edges[cut], self._edges[cut + 1]
        for decimals in range(_FEWEST_DECIMALS, _MOST_DECIMALS):
            value = round(float(self.values[cut]), decimals)
            if left < value < right:
                return value
        return float(self.values[cut])


def _middle(values: Floats) -> Interval:
    low, high = np.quantile(values, [0.025, 0.975], method="nearest")
    return float(low), float(high)


def _require_precision(grid: _Grid, aim: Aim, weights: Floats) -> None:
    total, right = grid.above(weights), grid.above(grid.right)
    if grid.precise(aim.precision, total, right).any():
        return
    shares = np.where(total >= FEWEST, right / np.maximum(total, 1), -1.0)
    best = int(shares.argmax())
    if shares[best] < 0:
        message = f"{len(weights)} questions are too few: a precision needs at least {FEWEST}"
        raise TrainingError(message)
    message = (
        f"no upper threshold makes {aim.precision:.4g} of the questions judged Correct right: the "
        f"best is {shares[best]:.3f} of {total[best]:.0f} questions, from {grid.tidy(best):g} on. "
        "Aim for a lower precision, or train the evaluator on data like this"
    )
    raise TrainingError(message)

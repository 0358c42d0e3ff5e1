"""Metrics of an evaluator, from labels and scores."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crag.papers.evaluator.pairs import Pair
from crag.state import ACTIONS, Action

_BINS = 10
_Z95, _Z99 = 1.959964, 2.575829
Floats = NDArray[np.float64]


def quality(pairs: Sequence[Pair], scores: Sequence[float]) -> dict[str, float]:
    """Return `auc`, `accuracy` (two-way, at 0), `best_accuracy` and `top1`, each in [0, 1].

    Undefined metrics are omitted: the AUC of one class, or top-1 without a question that has both a
    relevant and an irrelevant text.
    """
    positives = [pair.positive for pair in pairs]
    found = {
        "auc": auc(positives, scores),
        "accuracy": accuracy(positives, scores, 0.0),
        "best_accuracy": best_accuracy(positives, scores),
        "top1": top1(pairs, scores),
    }
    return {name: value for name, value in found.items() if value is not None}


def auc(positives: Sequence[bool], scores: Sequence[float]) -> float | None:
    """Return the area under the ROC curve; None if there is only one class."""
    if len(set(positives)) < 2:  # noqa: PLR2004 - two classes
        return None
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(positives, scores))


def accuracy(positives: Sequence[bool], scores: Sequence[float], threshold: float) -> float:
    """Return the share of texts that ``score >= threshold`` classifies correctly."""
    return float(np.mean((np.asarray(scores) >= threshold) == np.asarray(positives)))


def best_accuracy(positives: Sequence[bool], scores: Sequence[float]) -> float:
    """Return the accuracy at the best threshold."""
    values, place = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True)
    signs = np.where(np.asarray(positives), 1, -1)
    gains = np.bincount(place, signs, minlength=len(values))[::-1].cumsum()
    right = np.count_nonzero(signs < 0) + max(0.0, float(gains.max()))
    return float(right / len(signs))


def top1(pairs: Sequence[Pair], scores: Sequence[float]) -> float | None:
    """Return the share of questions whose best-scored text is relevant.

    Only questions with a relevant and an irrelevant text count. If texts tie for the best score,
    the share of relevant ones counts, as if one were chosen at random.
    """
    groups: dict[str, list[tuple[float, bool]]] = {}
    for pair, score in zip(pairs, scores, strict=True):
        groups.setdefault(pair.question, []).append((score, pair.positive))
    mixed = [texts for texts in groups.values() if len({relevant for _, relevant in texts}) > 1]
    if not mixed:
        return None
    return math.fsum(_share_of_best(texts) for texts in mixed) / len(mixed)


def _share_of_best(texts: Sequence[tuple[float, bool]]) -> float:
    best = max(score for score, _ in texts)
    tied = [relevant for score, relevant in texts if score == best]
    return sum(tied) / len(tied)


def confusion(ideal: Sequence[Action], chosen: Sequence[Action]) -> dict[Action, dict[Action, int]]:
    """Count the sets by their ideal action (outer) and the chosen one (inner)."""
    table: dict[Action, dict[Action, int]] = {row: dict.fromkeys(ACTIONS, 0) for row in ACTIONS}
    for row, column in zip(ideal, chosen, strict=True):
        table[row][column] += 1
    return table


class Bin(NamedTuple):
    """Texts of similar probability: predicted and observed share, and their number."""

    probability: float
    relevant: float
    texts: int


def reliability(
    positives: Sequence[bool], probabilities: Sequence[float], bins: int = _BINS
) -> list[Bin]:
    """Group texts into `bins` equal ranges of [0, 1], ascending; empty ones are left out."""
    stated = np.clip(np.asarray(probabilities, dtype=np.float64), 0.0, 1.0)
    truth = np.asarray(positives, dtype=np.float64)
    place = np.minimum((stated * bins).astype(int), bins - 1)
    return [
        Bin(float(stated[within].mean()), float(truth[within].mean()), int(within.sum()))
        for within in (place == number for number in np.unique(place))
    ]


def calibration_error(
    positives: Sequence[bool], probabilities: Sequence[float], bins: int = _BINS
) -> float:
    """Return the expected calibration error: the mean gap of predicted and observed, in [0, 1].

    Probabilities outside [0, 1] are clipped.
    """
    found = reliability(positives, probabilities, bins)
    gaps = (part.texts * abs(part.probability - part.relevant) for part in found)
    return math.fsum(gaps) / len(positives)


def as_probability(scores: Sequence[float]) -> list[float]:
    """Map scores in [-1, 1] to [0, 1], clipping others."""
    return [min(1.0, max(0.0, (1 + score) / 2)) for score in scores]


def wilson(hits: float, total: float) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson's formula; (0, 1) without data."""
    if not total:
        return 0.0, 1.0
    share, extra = hits / total, _Z95**2 / total
    middle = (share + extra / 2) / (1 + extra)
    half = math.sqrt(extra * (share * (1 - share) + extra / 4)) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)


class Discrimination(NamedTuple):
    """The AUC, its 99 % interval, and how likely one as far from a half is by chance."""

    auc: float
    low: float
    high: float
    p: float


def discrimination(
    groups: Sequence[int], positives: Sequence[bool], scores: Sequence[float]
) -> Discrimination:
    """Test whether scores separate relevant texts from others; both classes must be present.

    `groups` is the question number of each text, because texts of one question are not independent.
    The two-sided p uses the larger of two variances: of labels permuted over all texts
    (Mann–Whitney, corrected for ties), and of the AUC over questions.
    """
    truth, values = np.asarray(positives, dtype=bool), np.asarray(scores, dtype=np.float64)
    above = _share_below(values[~truth], values)
    placement = np.where(truth, above, 1 - _share_below(values[truth], values))
    area = float(placement[truth].mean())
    sizes = np.where(truth, truth.sum(), (~truth).sum())
    of_question = np.bincount(np.asarray(groups), (placement - area) / sizes)
    clustered = float(of_question @ of_question)
    spread = _Z99 * math.sqrt(clustered)
    variance = max(clustered, _by_chance(truth, values))
    z = abs(area - 0.5) / math.sqrt(variance) if variance else 0.0
    low, high = max(0.0, area - spread), min(1.0, area + spread)
    return Discrimination(area, low, high, math.erfc(z / math.sqrt(2)))


def _share_below(others: Floats, values: Floats) -> Floats:
    """Return the share of `others` below each value; equal ones count half."""
    ordered = np.sort(others)
    left, right = (ordered.searchsorted(values, side=side) for side in ("left", "right"))
    share: Floats = (left + right) / (2 * len(ordered))
    return share


def _by_chance(truth: NDArray[np.bool_], values: Floats) -> float:
    ones, total = int(truth.sum()), len(truth)
    _, ties = np.unique(values, return_counts=True)
    tied = float((ties.astype(np.float64) ** 3 - ties).sum()) / (total * (total - 1))
    return (total + 1 - tied) / (12 * ones * (total - ones))

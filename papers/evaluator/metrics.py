"""Metrics of an evaluator, from labels and scores."""

import math
from collections.abc import Sequence

import numpy as np

from crag.papers.evaluator.pairs import Pair, by_question
from crag.state import ACTIONS, Action


def quality(pairs: Sequence[Pair], scores: Sequence[float]) -> dict[str, float]:
    """Return `auc`, `accuracy` (two-way, at 0), `best_accuracy` and `top1`, each in [0, 1].

    Undefined metrics are omitted: the AUC of one class, or top-1 without a question that has both a
    relevant and an irrelevant text.
    """
    from sklearn.metrics import roc_auc_score

    positives = [pair.positive for pair in pairs]
    found = {
        "auc": float(roc_auc_score(positives, scores)) if len(set(positives)) > 1 else None,
        "accuracy": float(np.mean((np.asarray(scores) >= 0) == np.asarray(positives))),
        "best_accuracy": best_accuracy(positives, scores),
        "top1": top1(pairs, scores),
    }
    return {name: value for name, value in found.items() if value is not None}


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
    score_of = dict(zip(pairs, scores, strict=True))
    shares = []
    for texts in by_question(pairs).values():
        if len({pair.positive for pair in texts}) > 1:
            best = max(score_of[pair] for pair in texts)
            tied = [pair.positive for pair in texts if score_of[pair] == best]
            shares.append(sum(tied) / len(tied))
    return math.fsum(shares) / len(shares) if shares else None


def confusion(ideal: Sequence[Action], chosen: Sequence[Action]) -> dict[Action, dict[Action, int]]:
    """Count the sets by their ideal action (outer) and the chosen one (inner)."""
    table: dict[Action, dict[Action, int]] = {row: dict.fromkeys(ACTIONS, 0) for row in ACTIONS}
    for row, column in zip(ideal, chosen, strict=True):
        table[row][column] += 1
    return table

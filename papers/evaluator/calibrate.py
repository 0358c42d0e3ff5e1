"""Fit the thresholds of any evaluator to labelled data, exactly, and report their effect."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crag.correction.action import branches, decide
from crag.errors import CragError
from crag.extras import require
from crag.models.model_card import Calibration
from crag.papers.evaluator.evidence import (
    Evidence,
    JudgedSet,
    ProgressCallback,
    Question,
    confusion,
    quality,
    read_questions,
    score_questions,
)
from crag.papers.evaluator.pairs import LabelRule
from crag.parts import Evaluator
from crag.state import Action, Thresholds

FEWEST = 10
"""Fewest questions judged Correct for their precision to count."""
SURE = 0.001
"""Scores are not calibrated if chance separates the labels as well more often than this."""
_ROUNDING = 1e-9
_HALF = 0.5


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
            raise CragError(message)

    def __str__(self) -> str:
        return (
            f"at least {self.precision:.4g} of the questions judged Correct have a relevant best "
            f"text, and at most {self.discarded:.4g} of those with a relevant text are discarded"
        )


def fit(sets: Sequence[JudgedSet], aim: Aim) -> Thresholds:
    """Return the thresholds for `aim`, each midway between neighbouring best scores.

    `upper` is the lowest threshold with the aimed precision over at least ten questions, and
    `lower` the highest that discards no more than aimed for. If `lower` would be above `upper`,
    both become the threshold between them that meets both aims with the fewest wrong actions.

    Raises:
        CragError: no threshold reaches the precision.
    """
    if len(sets) < FEWEST:
        message = f"{len(sets)} questions are too few: a precision needs at least {FEWEST}"
        raise CragError(message)
    best, right, usable = (np.array(column) for column in list(zip(*sets, strict=True))[:3])
    scores = np.unique(best)
    cuts = np.array([scores[0] - 1e-3, *(scores[:-1] / 2 + scores[1:] / 2), scores[-1] + 1e-3])
    above = best >= cuts[:, None]
    total, wrong, lost = (part.sum(1) for part in (above, above & ~right, ~above & usable))
    precise = (total >= FEWEST) & (wrong <= (1 - aim.precision) * total + _ROUNDING)
    if not precise.any():
        shares = np.where(total >= FEWEST, 1 - wrong / np.maximum(total, 1), -1.0)
        at = int(shares.argmax())
        message = (
            f"no upper threshold makes {aim.precision:.4g} of the questions judged Correct right: "
            f"the best is {shares[at]:.3f} of {total[at]} questions, from {cuts[at]:g} on. Aim for "
            "a lower precision, or train the evaluator on data like this"
        )
        raise CragError(message)
    upper = int(precise.argmax())
    lower = int(np.flatnonzero(lost <= aim.discarded * usable.sum() + _ROUNDING)[-1])
    if lower > upper:
        mistakes = np.where(precise, wrong + lost, np.inf)[upper : lower + 1]
        upper = lower = upper + int(mistakes.argmin())
    return Thresholds(upper=float(cuts[upper]), lower=float(cuts[lower]))


class Proportion(NamedTuple):
    """A share, with its 95 % interval by Wilson's formula."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True, kw_only=True)
class Report:
    """Thresholds, and their effect on the data they were fitted to."""

    precision: Proportion
    """Questions with a relevant best text, of those judged Correct."""
    discarded: Proportion
    """Questions judged Incorrect, of those with a relevant text."""
    confusion: dict[Action, dict[Action, int]]
    """Questions by ideal action (outer) and chosen one (inner)."""
    metrics: dict[str, float]
    calibration: Calibration
    """The entry for the evaluator's card."""


def calibrate(
    evaluator: Evaluator,
    files: Sequence[Path],
    *,
    aim: Aim | None = None,
    labels: LabelRule = "auto",
    progress: ProgressCallback | None = None,
) -> Report:
    """Fit the thresholds of `evaluator` to labelled pairs or QA sets; nothing is written.

    A question in two files counts twice, with the texts of each.

    Raises:
        DataError: a file cannot be used.
        EvaluatorError: the evaluator returns invalid scores.
        CragError: there is too little data, the scores do not separate the labels, or the aim
            cannot be reached.
        MissingPackageError: the extra `train` is not installed.
    """
    require("train", "calibration", "sklearn", "scipy")
    aim = aim or Aim()
    read = [read_questions(path, labels) for path in files]
    questions = list(chain.from_iterable(found for found, _ in read))
    _require_both_classes(questions)
    evidence = score_questions(evaluator, questions, progress)
    metrics = _informative(evidence)
    sets = evidence.sets
    thresholds = fit(sets, aim)
    chosen: list[Action] = [decide([one.best], **thresholds) for one in sets]
    judged = list(zip(sets, chosen, strict=True))
    usable: list[Action] = [action for one, action in judged if one.usable]
    return Report(
        precision=_share([one.right for one, action in judged if action == "correct"]),
        discarded=_share(["refine" not in branches(action) for action in usable]),
        confusion=confusion([one.ideal for one in sets], chosen),
        metrics=metrics,
        calibration=Calibration(
            **thresholds, aim=str(aim), questions=len(sets),
            data=[described for _, described in read],
        ),
    )  # fmt: skip


def _require_both_classes(questions: Sequence[Question]) -> None:
    """Reject data that is too small, or all of one class, before anything is scored."""
    for positive, name in ((True, "a relevant"), (False, "an irrelevant")):
        count = sum(any(p.positive == positive for p in q.pairs) for q in questions)
        if count < FEWEST:
            message = (
                f"cannot calibrate: {count} of {len(questions)} questions have {name} "
                f"text, and at least {FEWEST} are needed. Label more questions"
            )
            raise CragError(message)


def _informative(evidence: Evidence) -> dict[str, float]:
    """Return the quality of the scores, if they tell relevant texts from others."""
    from scipy.stats import mannwhitneyu

    scores = np.asarray(evidence.all_scores)
    relevant = np.array([pair.positive for pair in evidence.pairs])
    found = quality(evidence.pairs, evidence.all_scores)
    chance = float(mannwhitneyu(scores[relevant], scores[~relevant]).pvalue)
    if chance >= SURE or found["auc"] < _HALF:
        message = (
            "cannot calibrate: the scores do not separate relevant texts from others (AUC "
            f"{found['auc']:.3f}, by chance with p = {chance:.3f}). Check the labels, add data, or "
            "train an evaluator"
        )
        raise CragError(message)
    return found


def _share(hits: Sequence[bool]) -> Proportion:
    from scipy.stats import binomtest

    if not hits:
        return Proportion(0.0, 0.0, 1.0)
    interval = binomtest(sum(hits), len(hits)).proportion_ci(method="wilson")
    return Proportion(sum(hits) / len(hits), float(interval.low), float(interval.high))

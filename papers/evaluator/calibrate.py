"""Fit the thresholds of any evaluator to labelled data, and report their effect."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crag.correction.action import branches, decide
from crag.errors import TrainingError
from crag.extras import require
from crag.models.model_card import Calibration, ModelCard
from crag.papers.evaluator.evidence import (
    Evidence,
    ProgressCallback,
    Question,
    read_questions,
    score_questions,
)
from crag.papers.evaluator.metrics import confusion, quality
from crag.papers.evaluator.pairs import LabelRule
from crag.papers.evaluator.thresholds import (
    FEWEST,
    Aim,
    Interval,
    JudgedSet,
    TradeOff,
    fit,
    trade_off,
)
from crag.parts import Evaluator
from crag.state import ACTIONS, Action, Thresholds

SURE = 0.001
"""Scores are not calibrated if chance separates the labels as well more often than this."""
SHIFTED = 0.2
"""Distance from which two distributions of scores count as different."""
_KOLMOGOROV = 1.63
"""Divided by √n, the distance that chance alone exceeds once in a hundred samples."""
_TABLE_ROWS = 9
_QUANTILES = 21
_HALF = 0.5


class Proportion(NamedTuple):
    """A share, with its 95 % interval by Wilson's formula and its denominator."""

    value: float
    low: float
    high: float
    of: int


@dataclass(frozen=True, kw_only=True)
class Report:
    """Thresholds, and their effect on the data they were fitted to."""

    thresholds: Thresholds
    upper_interval: Interval
    """95 % interval over resampled questions."""
    lower_interval: Interval
    precision: Proportion
    """Questions with a relevant best text, of those judged Correct."""
    discarded: Proportion
    """Questions judged Incorrect, of those with a relevant text."""
    actions: dict[Action, float]
    """Share of each action."""
    confusion: dict[Action, dict[Action, int]]
    """Questions by ideal action (outer) and chosen one (inner)."""
    trade_off: list[TradeOff]
    metrics: dict[str, float]
    shift: float | None
    """Kolmogorov–Smirnov distance of these scores from those of the evaluator's card."""
    notes: list[str]
    """Warnings about the thresholds."""
    calibration: Calibration
    """The entry for the evaluator's card."""
    evidence: Evidence
    """The data behind the report."""


def calibrate(  # noqa: PLR0913 - what to calibrate, on what, for what
    evaluator: Evaluator,
    files: Sequence[Path],
    *,
    aim: Aim | None = None,
    labels: LabelRule = "auto",
    seed: int = 0,
    resamples: int = 1000,
    progress: ProgressCallback | None = None,
) -> Report:
    """Fit the thresholds of `evaluator` to labelled pairs or QA sets; nothing is written.

    A question in two files counts twice, with the texts of each.

    Raises:
        DataError: a file cannot be used.
        EvaluatorError: the evaluator returns invalid scores.
        TrainingError: there is too little data, the scores do not separate the labels, or the aim
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
    sets, scores = evidence.sets, evidence.all_scores
    found = fit(sets, aim, seed=seed, resamples=resamples)
    chosen: list[Action] = [decide([one.best], **found.thresholds) for one in sets]
    judged = list(zip(sets, chosen, strict=True))
    usable: list[Action] = [action for one, action in judged if one.usable]
    distance = _shift(getattr(evaluator, "card", None), scores)
    places = np.linspace(0, 1, _QUANTILES)
    quantiles = np.quantile(scores, places, method="inverted_cdf")
    return Report(
        thresholds=found.thresholds,
        upper_interval=found.upper_interval,
        lower_interval=found.lower_interval,
        precision=_share([one.right for one, action in judged if action == "correct"]),
        discarded=_share(["refine" not in branches(action) for action in usable]),
        actions={action: Counter(chosen)[action] / len(sets) for action in ACTIONS},
        confusion=confusion([one.ideal for one in sets], chosen),
        trade_off=trade_off(sets, _TABLE_ROWS),
        metrics=metrics,
        shift=distance,
        notes=_notes(sets, distance),
        calibration=Calibration(
            **found.thresholds,
            aim=str(aim),
            questions=len(sets),
            data=[described for _, described in read],
            quantiles=quantiles.tolist(),
        ),
        evidence=evidence,
    )


def _require_both_classes(questions: Sequence[Question]) -> None:
    """Reject data that is too small, or all of one class, before anything is scored."""
    for positive, name in ((True, "a relevant"), (False, "an irrelevant")):
        count = sum(any(p.positive == positive for p in q.pairs) for q in questions)
        if count < FEWEST:
            message = (
                f"cannot calibrate: {count} of {len(questions)} questions have {name} "
                f"text, and at least {FEWEST} are needed. Label more questions"
            )
            raise TrainingError(message)


def _informative(evidence: Evidence) -> dict[str, float]:
    """Return the quality of the scores, if they tell relevant texts from others."""
    from scipy.stats import mannwhitneyu

    scores = np.asarray(evidence.all_scores)
    relevant = np.array([pair.positive for pair in evidence.pairs])
    found = quality(evidence.pairs, evidence.all_scores)
    chance = float(mannwhitneyu(scores[relevant], scores[~relevant]).pvalue)
    if chance >= SURE:
        message = (
            "cannot calibrate: the scores do not separate relevant texts from others (AUC "
            f"{found['auc']:.3f}, by chance with p = {chance:.3f}). Check the labels, add data, or "
            "train an evaluator"
        )
        raise TrainingError(message)
    if found["auc"] < _HALF:
        message = (
            f"cannot calibrate: relevant texts score lower than others (AUC {found['auc']:.3f}). "
            "Check whether the labels are the wrong way round"
        )
        raise TrainingError(message)
    return found


def _shift(card: ModelCard | None, scores: Sequence[float]) -> float | None:
    from scipy.stats import ks_2samp

    known = card.calibration.quantiles if card is not None and card.calibration else []
    compared: Any = ks_2samp(known, scores) if known else None  # Its type names no fields.
    return float(compared.statistic) if known else None


def _share(hits: Sequence[bool]) -> Proportion:
    from scipy.stats import binomtest

    if not hits:
        return Proportion(0.0, 0.0, 1.0, 0)
    interval = binomtest(sum(hits), len(hits)).proportion_ci(method="wilson")
    return Proportion(sum(hits) / len(hits), float(interval.low), float(interval.high), len(hits))


def _notes(sets: Sequence[JudgedSet], distance: float | None) -> list[str]:
    notes = []
    hopeless = sum(not one.usable for one in sets)
    if hopeless < FEWEST:
        notes.append(
            f"{hopeless} of {len(sets)} questions have no relevant text: too little data on when "
            "to choose Incorrect. Add questions that your documents do not answer"
        )
    if distance is not None and distance > max(SHIFTED, _KOLMOGOROV / math.sqrt(len(sets))):
        notes.append(
            f"domain shift: {distance:.0%} more, or fewer, of these texts are below some score "
            "than of those the evaluator was calibrated on. Its own thresholds do not fit this "
            "data; use the ones fitted here, and check the metrics before you trust its scores"
        )
    return notes

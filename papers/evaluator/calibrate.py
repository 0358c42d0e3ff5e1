"""Fit the thresholds of any evaluator to labelled data, and report their effect."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crag.correction.action import branches, decide
from crag.extras import require
from crag.models.model_card import Calibration, ModelCard
from crag.papers.evaluator.evidence import (
    Evidence,
    ProgressCallback,
    read_questions,
    require_both_classes,
    require_information,
    score_questions,
)
from crag.papers.evaluator.metrics import (
    Discrimination,
    as_probability,
    calibration_error,
    confusion,
    quality,
    wilson,
)
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

TABLE_ROWS = 9
SHIFTED = 0.2
"""Distance from which two distributions of scores count as different."""
_KOLMOGOROV = 1.63
"""Divided by √n, the distance that chance alone exceeds once in a hundred samples."""
_SLACK = 0.01
_QUANTILES = 21


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
    """Distance of these scores from those of the evaluator's card; see `shift`."""
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
    require("train", "calibration", "sklearn")
    aim = aim or Aim()
    read = [read_questions(path, labels) for path in files]
    questions = list(chain.from_iterable(found for found, _ in read))
    require_both_classes(questions)
    evidence = score_questions(evaluator, questions, progress)
    telling = require_information(evidence)
    sets, scores = evidence.sets, evidence.all_scores
    found = fit(sets, aim, seed=seed, resamples=resamples)
    chosen: list[Action] = [decide([one.best], **found.thresholds) for one in sets]
    distance = _from_card(getattr(evaluator, "card", None), scores)
    return Report(
        thresholds=found.thresholds,
        upper_interval=found.upper_interval,
        lower_interval=found.lower_interval,
        precision=_precision(sets, chosen),
        discarded=_discarded(sets, chosen),
        actions={action: Counter(chosen)[action] / len(sets) for action in ACTIONS},
        confusion=confusion([one.ideal for one in sets], chosen),
        trade_off=trade_off(sets, TABLE_ROWS),
        metrics=_metrics(evidence, telling),
        shift=distance,
        notes=_notes(sets, distance),
        calibration=Calibration(
            **found.thresholds,
            aim=str(aim),
            questions=len(sets),
            data=[described for _, described in read],
            quantiles=quantiles(scores),
        ),
        evidence=evidence,
    )


def quantiles(scores: Sequence[float]) -> list[float]:
    """Return the 0th, 5th, … 100th percentile of `scores`, each one of them."""
    places = np.linspace(0, 1, _QUANTILES)
    return [float(value) for value in np.quantile(scores, places, method="inverted_cdf")]


def shift(known: Sequence[float], scores: Sequence[float]) -> float:
    """Return how much the distribution of `scores` differs from one with the quantiles `known`.

    This is the Kolmogorov–Smirnov distance at the quantiles: 0.3 means that 30 % more, or fewer, of
    the texts are below some score than before. Unlike the population stability index it needs no
    bins, which are noisy in small samples. Differences below a hundredth of the range of known
    scores are ignored.
    """
    ordered = np.sort(np.asarray(scores, dtype=np.float64))
    slack = _SLACK * (known[-1] - known[0])
    at = np.asarray(known)
    below = ordered.searchsorted(at - slack, side="left") / len(ordered)
    up_to = ordered.searchsorted(at + slack, side="right") / len(ordered)
    shares = np.linspace(0, 1, len(known))
    return float(np.maximum(np.maximum(below - shares, shares - up_to), 0).max())


def _from_card(card: ModelCard | None, scores: Sequence[float]) -> float | None:
    known = card.calibration.quantiles if card is not None and card.calibration else []
    return shift(known, scores) if known else None


def _precision(sets: Sequence[JudgedSet], chosen: Sequence[Action]) -> Proportion:
    return _share([s.right for s, action in zip(sets, chosen, strict=True) if action == "correct"])


def _discarded(sets: Sequence[JudgedSet], chosen: Sequence[Action]) -> Proportion:
    actions: list[Action] = [a for s, a in zip(sets, chosen, strict=True) if s.usable]
    return _share(["refine" not in branches(action) for action in actions])


def _share(hits: Sequence[bool]) -> Proportion:
    value = sum(hits) / len(hits) if hits else 0.0
    return Proportion(value, *wilson(sum(hits), len(hits)), len(hits))


def _metrics(evidence: Evidence, telling: Discrimination) -> dict[str, float]:
    pairs, scores = evidence.pairs, evidence.all_scores
    found = quality(pairs, scores) | {"auc_low": telling.low, "auc_high": telling.high}
    if all(-1 <= score <= 1 for score in scores):  # Others, such as T5's, are not probabilities.
        positives = [pair.positive for pair in pairs]
        found["calibration_error"] = calibration_error(positives, as_probability(scores))
    return found


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

"""From one score per document to one action for the whole set (CRAG, Sec. 4.3)."""

from collections.abc import Sequence

from crag.settings import Settings
from crag.state import Action


def decide(scores: Sequence[float], upper: float, lower: float) -> Action:
    """Judge a set of documents by its best one.

    With m the largest score: ``m >= upper`` is correct, ``m < lower`` incorrect, ambiguous between
    them. The comparison at equality is that of the official code; the paper's words ("higher
    than") differ from it only there. No document at all is incorrect.
    """
    best = max(scores, default=float("-inf"))
    if best >= upper:
        return "correct"
    return "ambiguous" if best >= lower else "incorrect"


def replaced(action: Action, settings: Settings) -> Action:
    """Return the action that the ablation in `settings` puts in place of `action`.

    Without Correct or Incorrect, those questions get Ambiguous knowledge (Table 2); `only` gives
    every question the same action (Table 11 of version 3). Without Ambiguous is not a replacement
    but a single threshold: see `limits`.
    """
    if settings.only is not None:
        return settings.only
    return "ambiguous" if action == settings.without else action


def limits(upper: float, lower: float, settings: Settings) -> tuple[float, float]:
    """Return the upper and lower threshold in force for one run.

    The settings' own values win over the evaluator's `upper` and `lower`; where only one is set
    and crosses the evaluator's other one, that gives way. Without Ambiguous both are the single
    threshold, whose value the paper does not give; unset, it is their midpoint.
    """
    if settings.upper is not None:
        upper, lower = settings.upper, min(lower, settings.upper)
    if settings.lower is not None:
        upper, lower = max(upper, settings.lower), settings.lower
    if settings.without == "ambiguous":
        single = settings.single_threshold
        upper = lower = (upper + lower) / 2 if single is None else single
    return upper, lower

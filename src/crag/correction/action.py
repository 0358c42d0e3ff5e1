"""From one score per document to one action for the whole set (CRAG, Sec. 4.3)."""

from collections.abc import Sequence
from typing import Literal

from crag.settings import Settings
from crag.state import Action

Branch = Literal["refine", "web"]


def decide(scores: Sequence[float], upper: float, lower: float) -> Action:
    """Choose the action from the best score of a set of documents.

    With m the largest score: ``m >= upper`` is correct, ``m < lower`` is incorrect, and anything
    between is ambiguous. Equality is handled as in the official code; the paper says "higher than".
    No documents at all is incorrect.
    """
    best = max(scores, default=float("-inf"))
    if best >= upper:
        return "correct"
    return "ambiguous" if best >= lower else "incorrect"


def branches(action: Action) -> list[Branch]:
    """Return the sources of knowledge for `action`; two run in parallel (CRAG, Alg. 1)."""
    match action:
        case "correct":
            return ["refine"]
        case "incorrect":
            return ["web"]
        case "ambiguous":
            return ["refine", "web"]


def limits(upper: float, lower: float, settings: Settings) -> tuple[float, float]:
    """Return the upper and lower threshold of one run.

    The values in `settings` override the evaluator's `upper` and `lower`. If only one is set and it
    crosses the evaluator's other one, both get the value that was set.
    """
    if settings.upper is not None:
        upper, lower = settings.upper, min(lower, settings.upper)
    if settings.lower is not None:
        upper, lower = max(upper, settings.lower), settings.lower
    return upper, lower

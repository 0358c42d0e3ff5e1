"""From probabilities of reflection tokens to scores (Self-RAG, Sec. 3.3 and Appendix A.3).

Everything is read from probabilities at known positions and nothing from the text, so that a text
cannot forge a critique.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from crag.parts import Candidate, Passage, Probabilities
from crag.reflection.cleaning import short_answer
from crag.reflection_tokens import (
    FULLY,
    GROUPS,
    IRRELEVANT,
    NO_RETRIEVAL,
    NO_SUPPORT,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
    Group,
)
from crag.settings import CritiqueWeights, ReflectionSettings
from crag.state import Critique, Flag

_GRADES: Mapping[Group, Mapping[str, float]] = {
    "relevance": {RELEVANT: 1.0},
    "support": {FULLY: 1.0, PARTIALLY: 0.5},
    "utility": dict(zip(UTILITY, (-1.0, -0.5, 0.0, 0.5, 1.0), strict=True)),
}
Grader = Callable[[Group, Probabilities], float]
"""Returns the score of a group of tokens."""


class CritiqueScores(NamedTuple):
    """The scores of one candidate."""

    relevance: float | None
    """0 to 1, as `support`; both are None without a passage."""
    support: float | None
    utility: float
    """-1 to 1."""
    sequence: float
    """0 to 1."""
    total: float


def seen(probabilities: Probabilities, token: str) -> float:
    """Return the probability of a token; 0 if it was not seen, or is no positive number."""
    p = probabilities.get(token, 0.0)
    return p if math.isfinite(p) and p > 0 else 0.0


def normalised(group: Group, probabilities: Probabilities) -> dict[str, float]:
    """Return the probabilities of the group's tokens, with sum 1; empty if none was seen.

    Tokens of other groups, and values that are not positive numbers, count as not seen.
    """
    known = {token: seen(probabilities, token) for token in GROUPS[group]}
    largest = max(known.values())
    if largest == 0:
        return {}
    shares = {token: p / largest for token, p in known.items()}
    mass = sum(shares.values())
    return {token: share / mass for token, share in shares.items()}


def argmax(group: Group, probabilities: Probabilities | None) -> str:
    """Return the likeliest token of the group, the first of equals; empty if none was seen."""
    shares = normalised(group, probabilities or {})
    return max(shares, key=shares.__getitem__) if shares else ""


def graded(
    group: Group,
    probabilities: Probabilities,
    grades: Mapping[Group, Mapping[str, float]] = _GRADES,
) -> float:
    """Return the score of a group other than Retrieve; 0 if no token of it was seen.

    IsRel: the share of Relevant. IsSup: fully + 0.5 partially. IsUse: from -1 to 1.
    """
    shares = normalised(group, probabilities)
    weighted = sum(grades[group].get(token, 0.0) * share for token, share in shares.items())
    return max(-1.0, min(1.0, weighted))  # Rounding must not carry a score out of its range.


def retrieve_ratio(probabilities: Probabilities, others: Sequence[str] = (NO_RETRIEVAL,)) -> float:
    """Return p(yes) / (p(yes) + p(no)), 0 to 1 (Self-RAG, Appendix A.3); `others` stand for no.

    0.5 if none of the tokens was seen.
    """
    yes = seen(probabilities, RETRIEVAL)
    mass = yes + math.fsum(seen(probabilities, token) for token in others)
    return yes / mass if mass else 0.5


def score(
    candidate: Candidate, weights: CritiqueWeights, *, has_passage: bool, grade: Grader = graded
) -> CritiqueScores:
    """Score a candidate: exp of the mean log-probability plus weighted critiques.

    The sources define no score without a passage: it is sequence and utility. IsSup and IsUse count
    only where the model wrote one of their tokens. An empty text has no sequence score.
    """
    mean = candidate.mean_log_probability
    is_empty = candidate.tokens <= 0 or math.isnan(mean)
    sequence = 0.0 if is_empty else math.exp(min(0.0, mean))
    utility = grade("utility", candidate.utility) if candidate.utility is not None else 0.0
    total = weights.sequence * sequence + weights.utility * utility
    if not has_passage:
        return CritiqueScores(None, None, utility, sequence, total)
    relevance = grade("relevance", candidate.relevance or {})
    support = grade("support", candidate.support) if candidate.support is not None else 0.0
    total += weights.relevance * relevance + weights.support * support
    return CritiqueScores(relevance, support, utility, sequence, total)


def critique_of(  # noqa: PLR0913 - a candidate, its scores and its place
    candidate: Candidate,
    scored: CritiqueScores,
    passage: tuple[int, Passage] | None,
    *,
    text: str | None = None,
    segment: int = 0,
    hypothesis: int = 0,
) -> Critique:
    """Record how a candidate was scored; whether it is kept is added later.

    `text` is what is used of the candidate's text, if that is not all.
    """
    used = candidate.text if text is None else text
    groups: dict[Group, Probabilities | None] = {"utility": candidate.utility}
    if passage:
        groups |= {"relevance": candidate.relevance, "support": candidate.support}
    shares = {group: normalised(group, given or {}) for group, given in groups.items()}
    raised: dict[Flag, bool] = {
        "unsure": not candidate.sure,
        "empty": not short_answer(used),
        "cut": candidate.ending == "length",
    }
    critique = Critique(
        segment=segment, hypothesis=hypothesis, passage=passage[0] if passage else None,
        title=passage[1].title if passage else "", text=used,
        probabilities={group: known for group, known in shares.items() if known},
        relevance=scored.relevance, support=scored.support, utility=scored.utility,
        sequence=scored.sequence, total=scored.total, kept=False, chosen=False, why="",
        flags=[flag for flag, is_raised in raised.items() if is_raised],
    )  # fmt: skip
    if candidate.quotation_score is not None:
        critique["quotation_score"] = candidate.quotation_score
    return critique


def objection(candidate: Candidate, settings: ReflectionSettings) -> str:
    """Return the critique by which hard constraints drop a candidate; empty if none does."""
    is_hard = settings.constraints == "hard"
    return NO_SUPPORT if is_hard and argmax("support", candidate.support) == NO_SUPPORT else ""


def doubt_of(critique: Critique) -> str:
    """Return the token by which the model objects to passage or text; empty if there is none."""
    shares = critique["probabilities"]
    if argmax("relevance", shares.get("relevance")) == IRRELEVANT:
        return IRRELEVANT
    return NO_SUPPORT if argmax("support", shares.get("support")) == NO_SUPPORT else ""

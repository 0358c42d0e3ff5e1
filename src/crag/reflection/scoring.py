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
    OPEN,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
    Group,
)
from crag.settings import CritiqueWeights
from crag.state import Critique, Flag

_GRADES: Mapping[Group, Mapping[str, float]] = {
    "relevance": {RELEVANT: 1.0},
    "support": {FULLY: 1.0, PARTIALLY: 0.5},
    "utility": dict(zip(UTILITY, (-1.0, -0.5, 0.0, 0.5, 1.0), strict=True)),
}
_MISSING: Mapping[Group, Flag] = {
    "relevance": "relevance_missing",
    "support": "support_missing",
    "utility": "utility_missing",
}
Grader = Callable[[Group, Probabilities], tuple[float, list[Flag]]]
"""Returns the score of a group of tokens, and what was missing."""


class CritiqueScores(NamedTuple):
    """The scores of one candidate."""

    relevance: float | None
    """0 to 1; None without passage."""
    support: float | None
    """0 to 1; None without passage."""
    utility: float
    """-1 to 1."""
    sequence: float
    """0 to 1."""
    total: float
    flags: tuple[Flag, ...]


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
) -> tuple[float, list[Flag]]:
    """Return the score of a group other than Retrieve, and what was missing.

    IsRel: the share of Relevant. IsSup: fully + 0.5 partially. IsUse: from -1 to 1. 0 if no token
    of the group was seen.
    """
    shares = normalised(group, probabilities)
    if not shares:
        return 0.0, [_MISSING[group]]
    weighted = sum(grades[group].get(token, 0.0) * share for token, share in shares.items())
    # Rounding must not carry a score out of its range.
    return max(-1.0, min(1.0, weighted)), _member_flags(probabilities, GROUPS[group])


def seen(probabilities: Probabilities, token: str) -> float:
    """Return the probability of a token; 0 if it was not seen, or is no positive number."""
    p = probabilities.get(token, 0.0)
    return p if math.isfinite(p) and p > 0 else 0.0


def retrieve_ratio(
    probabilities: Probabilities, others: Sequence[str] = (NO_RETRIEVAL,)
) -> tuple[float, list[Flag]]:
    """Return p(yes) / (p(yes) + p(no)), 0 to 1 (Self-RAG, Appendix A.3); `others` stand for no.

    0.5 with a flag if none of the tokens was seen.
    """
    yes = seen(probabilities, RETRIEVAL)
    mass = yes + math.fsum(seen(probabilities, token) for token in others)
    if mass == 0:
        return 0.5, ["retrieve_missing"]
    return yes / mass, _member_flags(probabilities, (RETRIEVAL, *others))


def sequence_score(candidate: Candidate) -> tuple[float, list[Flag]]:
    """Return exp of the mean log-probability, 0 to 1; 0 for an empty text or no number."""
    mean = candidate.mean_log_probability
    if candidate.tokens <= 0:
        return 0.0, []
    return (0.0, ["no_sequence_score"]) if math.isnan(mean) else (math.exp(min(0.0, mean)), [])


def score(
    candidate: Candidate, weights: CritiqueWeights, *, has_passage: bool, grade: Grader = graded
) -> CritiqueScores:
    """Score a candidate: sequence plus weighted critiques.

    The sources define no score without a passage: it is sequence and utility, with a flag. IsSup
    and IsUse count only where the model wrote one of their tokens.
    """
    sequence, flags = sequence_score(candidate)

    def graded_if_written(group: Group, probabilities: Probabilities | None) -> float:
        if probabilities is None:
            flags.append("no_support_token" if group == "support" else "no_utility_token")
            return 0.0
        value, missing = grade(group, probabilities)
        flags.extend(missing)
        return value

    utility = graded_if_written("utility", candidate.utility)
    total = weights.sequence * sequence + weights.utility * utility
    if not has_passage:
        return CritiqueScores(None, None, utility, sequence, total, (*flags, "no_retrieval_score"))
    relevance = graded_if_written("relevance", candidate.relevance or {})
    support = graded_if_written("support", candidate.support)
    total += weights.relevance * relevance + weights.support * support
    return CritiqueScores(relevance, support, utility, sequence, total, tuple(dict.fromkeys(flags)))


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
    raised: dict[Flag, bool] = {
        "unsure": not candidate.sure,
        "empty": not short_answer(used),
        "cut": candidate.ending == "length",
        "invented_passage": OPEN in candidate.text,
    }
    critique = Critique(
        segment=segment, hypothesis=hypothesis, passage=passage[0] if passage else None,
        title=passage[1].title if passage else "", text=used,
        probabilities=_shares(candidate, has_passage=passage is not None),
        relevance=scored.relevance, support=scored.support, utility=scored.utility,
        sequence=scored.sequence, total=scored.total, kept=False, chosen=False, why="",
        flags=[*scored.flags, *(flag for flag, is_raised in raised.items() if is_raised)],
    )  # fmt: skip
    if candidate.quotation_score is not None:
        critique["quotation_score"] = candidate.quotation_score
    return critique


def doubt_of(critique: Critique) -> str:
    """Return the token by which the model objects to passage or text; empty if there is none."""
    shares = critique["probabilities"]
    if argmax("relevance", shares.get("relevance")) == IRRELEVANT:
        return IRRELEVANT
    return NO_SUPPORT if argmax("support", shares.get("support")) == NO_SUPPORT else ""


def _member_flags(probabilities: Probabilities, needed: Sequence[str]) -> list[Flag]:
    return [] if all(token in probabilities for token in needed) else ["member_missing"]


def _shares(candidate: Candidate, *, has_passage: bool) -> dict[str, dict[str, float]]:
    shares_by_group = {"utility": normalised("utility", candidate.utility or {})}
    if has_passage:
        shares_by_group["relevance"] = normalised("relevance", candidate.relevance or {})
        shares_by_group["support"] = normalised("support", candidate.support or {})
    return {group: shares for group, shares in shares_by_group.items() if shares}

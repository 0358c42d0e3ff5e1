"""From probabilities of reflection tokens to scores (Self-RAG, Sec. 3.3 and Appendix A.3).

Everything is read from probabilities at known positions and nothing from the text, so that a text
cannot forge a critique.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crag.parts import Candidate, Passage, Probabilities
from crag.reflection_settings import ReflectionSettings
from crag.reflection_tokens import (
    FULLY,
    GROUPS,
    IRRELEVANT,
    NO_RETRIEVAL,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    UTILITY,
    Group,
)
from crag.state import Critique, Flag

_GRADES: Mapping[Group, Mapping[str, float]] = {
    "relevance": {RELEVANT: 1.0},
    "support": {FULLY: 1.0, PARTIALLY: 0.5},
    "utility": dict(zip(UTILITY, (-1.0, -0.5, 0.0, 0.5, 1.0), strict=True)),
}
_MISSING: Mapping[Group, Flag] = {
    "retrieve": "retrieve_missing",
    "relevance": "relevance_missing",
    "support": "support_missing",
    "utility": "utility_missing",
}


class ScoreRules(NamedTuple):
    """Where a paper's equation or a released program scores otherwise than we do by default."""

    grades: Mapping[Group, Mapping[str, float]] = _GRADES
    """What each token counts in the score of its group."""
    unseen: float = 0.0
    """The score of IsRel and of IsSup if none of their tokens was seen."""
    unseen_relevance: float | None = None
    """The number that stands for the probability of an IsRel token that was not seen; it is not
    normalised. None: such a token has the probability 0."""


OURS = ScoreRules()


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
    group: Group, probabilities: Probabilities, rules: ScoreRules = OURS
) -> tuple[float, list[Flag]]:
    """Return the score of a group other than Retrieve, and what was missing.

    IsRel: the share of Relevant. IsSup: fully + 0.5 partially. IsUse: from -1 to 1.
    """
    shares = normalised(group, probabilities)
    if not shares:
        return (0.0 if group == "utility" else rules.unseen), [_MISSING[group]]
    grades = rules.grades[group]
    # Rounding must not carry a score out of its range.
    score = max(-1.0, min(1.0, sum(grades.get(t, 0.0) * p for t, p in shares.items())))
    return score, _member_flags(probabilities, GROUPS[group])


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
    candidate: Candidate,
    settings: ReflectionSettings,
    *,
    has_passage: bool,
    rules: ScoreRules = OURS,
) -> CritiqueScores:
    """Score a candidate: sequence plus weighted critiques.

    The sources define no score without a passage: it is sequence and utility, with a flag.
    """
    weights = settings.weights
    sequence, flags = sequence_score(candidate)
    utility = _written("utility", candidate.utility, rules, flags)
    total = (sequence if settings.sequence_score else 0.0) + weights.utility * utility
    if not has_passage:
        return CritiqueScores(None, None, utility, sequence, total, (*flags, "no_retrieval_score"))
    relevance = _relevance(candidate.relevance or {}, rules, flags)
    support = _written("support", candidate.support, rules, flags)
    total += weights.relevance * relevance + weights.support * support
    return CritiqueScores(relevance, support, utility, sequence, total, tuple(dict.fromkeys(flags)))


def undesired_tokens(candidate: Candidate, settings: ReflectionSettings) -> list[str]:
    """Return the undesired tokens among the likeliest ones of the candidate's critiques."""
    said = (
        argmax("relevance", candidate.relevance),
        argmax("support", candidate.support),
        argmax("utility", candidate.utility),
    )
    return [token for token in said if token in settings.undesired]


def critique_of(
    candidate: Candidate,
    scored: CritiqueScores,
    passage: tuple[int, Passage] | None,
    *,
    segment: int = 0,
    hypothesis: int = 0,
) -> Critique:
    """Record how a candidate was scored; whether it is kept is added later."""
    unsure: list[Flag] = [] if candidate.sure else ["unsure"]
    critique = Critique(
        segment=segment,
        hypothesis=hypothesis,
        passage=passage[0] if passage else None,
        title=passage[1].title if passage else "",
        text=candidate.text,
        probabilities=_shares(candidate, has_passage=passage is not None),
        relevance=scored.relevance,
        support=scored.support,
        utility=scored.utility,
        sequence=scored.sequence,
        total=scored.total,
        kept=False,
        chosen=False,
        why="",
        flags=[*scored.flags, *unsure],
    )
    if candidate.quotation_score is not None:
        critique["quotation_score"] = candidate.quotation_score
    return critique


def _relevance(probabilities: Probabilities, rules: ScoreRules, flags: list[Flag]) -> float:
    value, missing = graded("relevance", probabilities, rules)
    flags += missing
    if rules.unseen_relevance is None:
        return value
    yes, no = (probabilities.get(t, rules.unseen_relevance) for t in (RELEVANT, IRRELEVANT))
    return yes / (yes + no) if yes + no else value


def _written(
    group: Group, probabilities: Probabilities | None, rules: ScoreRules, flags: list[Flag]
) -> float:
    """Score a group that counts only where the model wrote one of its tokens."""
    if probabilities is None:
        flags.append("no_support_token" if group == "support" else "no_utility_token")
        return 0.0
    value, missing = graded(group, probabilities, rules)
    flags += missing
    return value


def _member_flags(probabilities: Probabilities, needed: Sequence[str]) -> list[Flag]:
    return [] if all(token in probabilities for token in needed) else ["member_missing"]


def _shares(candidate: Candidate, *, has_passage: bool) -> dict[str, dict[str, float]]:
    shares_by_group = {"utility": normalised("utility", candidate.utility or {})}
    if has_passage:
        shares_by_group["relevance"] = normalised("relevance", candidate.relevance or {})
        shares_by_group["support"] = normalised("support", candidate.support or {})
    return {group: shares for group, shares in shares_by_group.items() if shares}

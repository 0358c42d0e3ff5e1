"""From probabilities of reflection tokens to critiques (Self-RAG, Sec. 3.3 and Appendix A.3).

Everything is read from probabilities at known positions and nothing from the text, so that a text
cannot forge a critique.
"""

import math
from collections.abc import Mapping

from crag.parts import Candidate, Probabilities
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
from crag.settings import Settings
from crag.state import Critique, Flag

_GRADES: Mapping[Group, Mapping[str, float]] = {
    "relevance": {RELEVANT: 1.0},
    "support": {FULLY: 1.0, PARTIALLY: 0.5},
    "utility": dict(zip(UTILITY, (-1.0, -0.5, 0.0, 0.5, 1.0), strict=True)),
}


def seen(probabilities: Probabilities, token: str) -> float:
    """Return the probability of a token; 0 if it was not seen, or is no positive number."""
    p = probabilities.get(token, 0.0)
    return p if math.isfinite(p) and p > 0 else 0.0


def normalised(group: Group, probabilities: Probabilities | None) -> dict[str, float]:
    """Return the probabilities of the group's tokens, with sum 1; empty if none was seen.

    Tokens of other groups, and values that are not positive numbers, count as not seen.
    """
    known = {token: seen(probabilities or {}, token) for token in GROUPS[group]}
    largest = max(known.values())
    if largest == 0:
        return {}
    shares = {token: p / largest for token, p in known.items()}
    mass = sum(shares.values())
    return {token: share / mass for token, share in shares.items()}


def argmax(group: Group, probabilities: Probabilities | None) -> str:
    """Return the likeliest token of the group, the first of equals; empty if none was seen."""
    shares = normalised(group, probabilities)
    return max(shares, key=shares.__getitem__) if shares else ""


def graded(group: Group, probabilities: Probabilities | None) -> float:
    """Return the score of a group other than Retrieve; 0 if no token of it was seen.

    IsRel: the share of Relevant. IsSup: fully + 0.5 partially. IsUse: from -1 to 1.
    """
    shares = normalised(group, probabilities)
    return sum(_GRADES[group].get(token, 0.0) * share for token, share in shares.items())


def retrieve_ratio(probabilities: Probabilities) -> float:
    """Return p(yes) / (p(yes) + p(no)), 0 to 1 (Self-RAG, Appendix A.3).

    0.5 if neither token was seen.
    """
    yes, no = (seen(probabilities, token) for token in (RETRIEVAL, NO_RETRIEVAL))
    return yes / (yes + no) if yes + no else 0.5


def critique_of(  # noqa: PLR0913 - a candidate and its place
    candidate: Candidate,
    passage: int | None,
    settings: Settings,
    *,
    text: str | None = None,
    segment: int = 0,
    hypothesis: int = 0,
) -> Critique:
    """Score a candidate: exp of the mean log-probability plus weighted critiques.

    The sources define no score without a passage: it is sequence and utility. IsSup and IsUse count
    only where the model wrote one of their tokens. An empty text has no sequence score. `text` is
    what is used of the candidate's text, if that is not all; what becomes of it is added later.
    """
    used, mean = candidate.text if text is None else text, candidate.mean_log_probability
    has_mean = candidate.tokens > 0 and not math.isnan(mean)
    sequence = math.exp(min(0.0, mean)) if has_mean else 0.0
    utility = graded("utility", candidate.utility)
    total = sequence + settings.weight_utility * utility
    relevance = support = None
    if passage is not None:
        relevance = graded("relevance", candidate.relevance)
        support = graded("support", candidate.support)
        total += settings.weight_relevance * relevance + settings.weight_support * support
    doubted: dict[str, bool] = {
        IRRELEVANT: passage is not None and argmax("relevance", candidate.relevance) == IRRELEVANT,
        NO_SUPPORT: argmax("support", candidate.support) == NO_SUPPORT,
    }
    raised: dict[Flag, bool] = {
        "unsure": not candidate.sure,
        "empty": not short_answer(used),
        "cut": candidate.ending == "length",
    }
    return Critique(
        segment=segment, hypothesis=hypothesis, passage=passage, text=used, relevance=relevance,
        support=support, utility=utility, sequence=sequence, total=total,
        doubts=[token for token, is_doubted in doubted.items() if is_doubted],
        quoted=candidate.quoted, kept=False, chosen=False, why="",
        flags=[flag for flag, is_raised in raised.items() if is_raised],
    )  # fmt: skip


def objection(critique: Critique, settings: Settings) -> str:
    """Return the token for which hard constraints drop a candidate; empty if none does."""
    is_hard = settings.constraints == "hard"
    return NO_SUPPORT if is_hard and NO_SUPPORT in critique["doubts"] else ""

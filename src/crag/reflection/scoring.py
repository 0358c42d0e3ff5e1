"""From probabilities of reflection tokens to scores (Self-RAG, Sec. 3.3 and Appendix A.3).

Everything is read from probabilities at known positions and nothing from the text, so that a text
cannot forge a critique.
"""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from crag.parts import Candidate, Passage, Probabilities
from crag.reflection_settings import Compat, CritiqueWeights, ReflectionSettings
from crag.reflection_tokens import (
    CONTINUE,
    FULLY,
    GROUPS,
    IRRELEVANT,
    NO_RETRIEVAL,
    PARTIALLY,
    RELEVANT,
    RETRIEVAL,
    RETRIEVE,
    UTILITY,
    Group,
)
from crag.state import Critique, Flag

_UNSEEN_LOG_PROBABILITY = -100.0
_UNSEEN_PROBABILITY = -100.0
_HALF = 0.5
_RETRIEVE = re.compile("|".join(map(re.escape, RETRIEVE)))
_GRADES: Mapping[Group, Mapping[str, float]] = {
    "relevance": {RELEVANT: 1.0},
    "support": {FULLY: 1.0, PARTIALLY: 0.5},
    "utility": dict(zip(UTILITY, (-1.0, -0.5, 0.0, 0.5, 1.0), strict=True)),
}
_DESIRED: Mapping[Group, Mapping[str, float]] = {
    "relevance": {RELEVANT: 1.0},
    "support": {FULLY: 1.0},
    "utility": {UTILITY[-1]: 1.0},
}
_MISSING: Mapping[Group, Flag] = {
    "retrieve": "retrieve_missing",
    "relevance": "relevance_missing",
    "support": "support_missing",
    "utility": "utility_missing",
}


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
    seen = {token: probabilities.get(token, 0.0) for token in GROUPS[group]}
    seen = {token: p if math.isfinite(p) and p > 0 else 0.0 for token, p in seen.items()}
    largest = max(seen.values())
    if largest == 0:
        return {}
    shares = {token: p / largest for token, p in seen.items()}
    mass = sum(shares.values())
    return {token: share / mass for token, share in shares.items()}


def argmax(group: Group, probabilities: Probabilities | None) -> str:
    """Return the likeliest token of the group, the first of equals; empty if none was seen."""
    shares = normalised(group, probabilities or {})
    return max(shares, key=shares.__getitem__) if shares else ""


def graded(
    group: Group, probabilities: Probabilities, compat: frozenset[Compat] = frozenset()
) -> tuple[float, list[Flag]]:
    """Return the score of a group other than Retrieve, and what was missing.

    IsRel: the share of Relevant. IsSup: fully + 0.5 partially. IsUse: from -1 to 1.
    """
    shares = normalised(group, probabilities)
    if not shares:
        half = "missing_group_half" in compat and group != "utility"
        return (_HALF if half else 0.0), [_MISSING[group]]
    grades = (_DESIRED if "desired_token_only" in compat else _GRADES)[group]
    # Rounding must not carry a score out of its range.
    score = max(-1.0, min(1.0, sum(grades.get(t, 0.0) * p for t, p in shares.items())))
    return score, _member_flags(group, probabilities)


def retrieve_ratio(
    probabilities: Probabilities, *, over_all: bool = False
) -> tuple[float, list[Flag]]:
    """Return p(yes) / (p(yes) + p(no)), 0 to 1 (Self-RAG, Appendix A.3).

    With `over_all` the share is of all three Retrieve tokens (Sec. 3.3). 0.5 with a flag if none
    of the tokens was seen.
    """
    others = (NO_RETRIEVAL, CONTINUE) if over_all else (NO_RETRIEVAL,)
    yes = _seen(probabilities, RETRIEVAL)
    mass = yes + math.fsum(_seen(probabilities, token) for token in others)
    if mass == 0:
        return _HALF, ["retrieve_missing"]
    return yes / mass, _member_flags("retrieve", probabilities, (RETRIEVAL, *others))


def released_ratio(probabilities: Probabilities) -> float:
    """Return the ratio of log-probabilities, as the released short form has it; it is inverted."""
    yes, no = (_log(_seen(probabilities, token)) for token in (RETRIEVAL, NO_RETRIEVAL))
    return yes / (yes + no) if yes + no else _HALF


def remap_ratio(probabilities: Probabilities) -> float:
    """Return (p(yes) + p(continue)) / (p(yes) + p(no)), as the released long form; may exceed 1."""
    yes, no, more = (_seen(probabilities, t) for t in (RETRIEVAL, NO_RETRIEVAL, CONTINUE))
    if yes + no == 0:
        return math.inf if more else _HALF
    return (yes + more) / (yes + no)


def remapped(candidate: Candidate, delta: float) -> str:
    """Return the text of a continuation with `[No Retrieval]` rewritten, as the released long form.

    Each one whose `remap_ratio` is above `delta` becomes ``[Retrieval]``. The last part always
    gets a ``[No Retrieval]`` that the model did not write; a text without any stays as it is.
    """
    if NO_RETRIEVAL not in candidate.text:
        return candidate.text
    found = zip(_RETRIEVE.finditer(candidate.text), candidate.retrieve, strict=False)
    ratios = [remap_ratio(shares) for token, shares in found if token[0] == NO_RETRIEVAL]
    parts = candidate.text.split(NO_RETRIEVAL)
    return "".join(
        part + (RETRIEVAL if place < len(ratios) and ratios[place] > delta else NO_RETRIEVAL)
        for place, part in enumerate(parts)
    )


def sequence_score(candidate: Candidate, *, with_end: bool = False) -> tuple[float, list[Flag]]:
    """Return exp of the mean log-probability, 0 to 1; 0 for an empty text or no number.

    `with_end` counts the token that ended the text as one of its tokens, as the released code does.
    """
    mean, tokens, end = candidate.mean_log_probability, candidate.tokens, None
    if with_end:
        end = candidate.end_log_probability
    if end is not None:
        mean, tokens = (mean * max(0, tokens) + end) / (max(0, tokens) + 1), max(0, tokens) + 1
    if tokens <= 0:
        return 0.0, []
    return (0.0, ["no_sequence_score"]) if math.isnan(mean) else (math.exp(min(0.0, mean)), [])


def score(
    candidate: Candidate,
    settings: ReflectionSettings,
    *,
    has_passage: bool,
    weights: CritiqueWeights | None = None,
) -> CritiqueScores:
    """Score a candidate: sequence plus weighted critiques; `weights` replace those of `settings`.

    The sources define no score without a passage: it is sequence and utility, with a flag.
    """
    compat, weights = settings.compat, weights or settings.weights
    sequence, flags = sequence_score(candidate, with_end="end_token_counts" in compat)
    utility = _written("utility", candidate.utility, compat, flags)
    total = (sequence if settings.sequence_score else 0.0) + weights.utility * utility
    if not has_passage:
        return CritiqueScores(None, None, utility, sequence, total, (*flags, "no_retrieval_score"))
    relevance = _relevance(candidate.relevance or {}, compat, flags)
    support = _written("support", candidate.support, compat, flags)
    total += weights.relevance * relevance + weights.support * support
    return CritiqueScores(relevance, support, utility, sequence, total, tuple(dict.fromkeys(flags)))


def long_form_score(
    candidate: Candidate, settings: ReflectionSettings, *, has_passage: bool
) -> CritiqueScores:
    """Score a segment of the long form, with its released quirks where `compat` names them."""
    if "zero_utility" in settings.compat:
        candidate = candidate._replace(utility=None)
    if "fixed_weights" not in settings.compat:
        return score(candidate, settings, has_passage=has_passage)
    settings = settings.model_copy(update={"sequence_score": False})
    return score(candidate, settings, has_passage=has_passage, weights=CritiqueWeights())


def short_form_score(
    candidate: Candidate, settings: ReflectionSettings, *, has_passage: bool
) -> CritiqueScores:
    """Score a whole answer of the short form, with its released quirk where `compat` names it."""
    without = settings.compat - {"minus_100_relevance"}
    settings = settings.model_copy(update={"compat": without})
    if "released_utility_weight" not in settings.compat:
        return score(candidate, settings, has_passage=has_passage)
    weights = settings.weights._replace(utility=1.0)
    return score(candidate, settings, has_passage=has_passage, weights=weights)


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
    """Write down how a candidate was scored; what becomes of it is added later."""
    return Critique(
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
        flags=list(scored.flags),
    )


def _relevance(probabilities: Probabilities, compat: frozenset[Compat], flags: list[Flag]) -> float:
    value, found = graded("relevance", probabilities, compat)
    flags += found
    if "minus_100_relevance" not in compat:
        return value
    yes, no = (probabilities.get(t, _UNSEEN_PROBABILITY) for t in (RELEVANT, IRRELEVANT))
    return yes / (yes + no) if yes + no else value


def _written(
    group: Group, probabilities: Probabilities | None, compat: frozenset[Compat], flags: list[Flag]
) -> float:
    """Score a group that counts only where the model wrote one of its tokens."""
    if probabilities is None:
        flags.append("no_support_token" if group == "support" else "no_utility_token")
        return 0.0
    value, found = graded(group, probabilities, compat)
    flags += found
    return value


def _member_flags(
    group: Group, probabilities: Probabilities, needed: tuple[str, ...] = ()
) -> list[Flag]:
    missing = any(token not in probabilities for token in needed or GROUPS[group])
    return ["member_missing"] if missing else []


def _seen(probabilities: Probabilities, token: str) -> float:
    p = probabilities.get(token, 0.0)
    return p if math.isfinite(p) and p > 0 else 0.0


def _log(p: float) -> float:
    return max(_UNSEEN_LOG_PROBABILITY, math.log(p)) if p > 0 else _UNSEEN_LOG_PROBABILITY


def _shares(candidate: Candidate, *, has_passage: bool) -> dict[str, dict[str, float]]:
    found = {"utility": normalised("utility", candidate.utility or {})}
    if has_passage:
        found["relevance"] = normalised("relevance", candidate.relevance or {})
        found["support"] = normalised("support", candidate.support or {})
    return {group: shares for group, shares in found.items() if shares}

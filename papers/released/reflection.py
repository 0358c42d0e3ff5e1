"""What the released programs of Self-RAG do otherwise, each by a name in the setting `compat`.

docs/method/paper-and-code.md says of each name what the papers say, what the code does, and what
ours does without it.

Settings of their own are products of scores (`accumulation`), scores without the model's confidence
(`sequence_score`), and unsupported segments left out at the end (`ignore_no_support`). Not
available: crashes. `rules` beside it has what differs in the search of the long form.
"""

import math
import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator

from crag.papers.settings import PaperSettings
from crag.parts import Candidate, Probabilities
from crag.reflection.scoring import CritiqueScores, Grader, graded, normalised, score, seen
from crag.reflection_tokens import (
    CONTINUE,
    END,
    FULLY,
    NO_RETRIEVAL,
    PARAGRAPH,
    RELEVANCE,
    RELEVANT,
    RETRIEVAL,
    RETRIEVE,
    SUPPORT,
    UTILITY,
    Group,
)
from crag.settings import CritiqueWeights

Compat = Literal[
    "released_ratio", "released_utility_weight", "released_text", "missing_group_half",
    "desired_token_only", "share_of_three", "end_token_counts", "minus_100_relevance",
    "zero_utility", "fixed_weights", "sibling_leak", "whole_continuation", "deepest_level",
    "depth_counts_root", "released_search", "released_remap", "released_ranking",
    "released_citations", "released_biography", "cut_at_blank_line", "released_draft",
]  # fmt: skip


def _separated(given: object) -> object:
    """Split text of a table into names at the commas; an empty one has none."""
    if given is None or isinstance(given, str):
        return [name.strip() for name in str(given or "").split(",") if name.strip()]
    return given


class ReleasedSettings(PaperSettings):
    """Settings of one run, with what only the papers vary; `ReleasedRules` read them."""

    compat: Annotated[frozenset[Compat], BeforeValidator(_separated)] = frozenset()
    """Released quirks to bring back, by name."""
    accumulation: Literal["sum", "mean", "product"] = "mean"
    """Long form: how the scores of segments become that of an answer."""
    sequence_score: bool = True
    """Add exp of the mean log-probability to a score."""
    ignore_no_support: bool = False
    """Long form: leave unsupported segments out of the final answer."""


def released_settings(values: Mapping[str, object]) -> ReleasedSettings:
    """Validate values of a table.

    Raises:
        SettingsError: a value is invalid.
    """
    return ReleasedSettings.model_validate(values)


RELEASED_SHORT: frozenset[Compat] = frozenset({
    "released_ratio", "released_utility_weight", "released_text", "missing_group_half",
    "end_token_counts",
})  # fmt: skip
"""What the released short form does."""
RELEASED_LONG: frozenset[Compat] = frozenset(get_args(Compat)) - RELEASED_SHORT - {
    "desired_token_only", "share_of_three", "released_biography",
}  # fmt: skip
"""What the released long form does for ASQA; it goes with accumulation "product". For Biography
`released_biography` takes the place of `released_citations`."""
RELEASED_DRAFT_TOKENS = 25
"""How long the draft is that the long form looks for ``[Retrieval]`` in."""
_HALF = 0.5
_UNSEEN = -100.0
"""The probability, or its logarithm, of a token that the model did not report."""
_RETRIEVE = re.compile("|".join(map(re.escape, RETRIEVE)))
_DELETED = (*SUPPORT, NO_RETRIEVAL, RETRIEVAL, *RELEVANCE, *PARAGRAPH, *UTILITY, END)
"""What both programs delete from a text, one after the other."""
_MISSING_SPACE = re.compile(r"(?<=\w)([.!?])(?=\w)")
_DESIRED: Mapping[Group, Mapping[str, float]] = {
    "relevance": {RELEVANT: 1.0},
    "support": {FULLY: 1.0},
    "utility": {UTILITY[-1]: 1.0},
}


def long_form_score(
    candidate: Candidate, settings: ReleasedSettings, *, has_passage: bool
) -> CritiqueScores:
    """Score a segment of the long form, with the quirks that `compat` names."""
    if "zero_utility" in settings.compat:
        candidate = candidate._replace(utility=None)
    weights = _weights(settings)
    if "fixed_weights" in settings.compat:
        weights = CritiqueWeights(sequence=0.0)
    unseen = _UNSEEN if "minus_100_relevance" in settings.compat else None
    grade = partial(_graded, settings, unseen)
    candidate = _with_end(candidate, settings)
    return score(candidate, weights, has_passage=has_passage, grade=grade)


def short_form_score(
    candidate: Candidate, settings: ReleasedSettings, *, has_passage: bool
) -> CritiqueScores:
    """Score a whole answer of the short form, with the quirks that `compat` names."""
    weights = _weights(settings)
    if "released_utility_weight" in settings.compat:
        weights = weights._replace(utility=1.0)
    candidate = _with_end(candidate, settings)
    return score(candidate, weights, has_passage=has_passage, grade=grader(settings))


def grader(settings: ReleasedSettings) -> Grader:
    """Return how both forms grade a group of tokens."""
    return partial(_graded, settings, None)


def _graded(
    settings: ReleasedSettings, unseen: float | None, group: Group, probabilities: Probabilities
) -> float:
    """Grade a group; `unseen` stands for the probability of an IsRel token that was not seen."""
    grades = {"grades": _DESIRED} if "desired_token_only" in settings.compat else {}
    value = graded(group, probabilities, **grades)
    if group != "utility" and "missing_group_half" in settings.compat:
        value = value if normalised(group, probabilities) else _HALF
    if group == "relevance" and unseen is not None:
        yes, no = (probabilities.get(token, unseen) for token in (RELEVANT, RELEVANCE[0]))
        value = yes / (yes + no) if yes + no else value
    return value


def _weights(settings: ReleasedSettings) -> CritiqueWeights:
    return settings.weights if settings.sequence_score else settings.weights._replace(sequence=0.0)


def _with_end(candidate: Candidate, settings: ReleasedSettings) -> Candidate:
    """Count the token that ended a text as one of those whose mean is the sequence score."""
    end, tokens = candidate.end_log_probability, max(0, candidate.tokens)
    if "end_token_counts" not in settings.compat or end is None:
        return candidate
    mean = (candidate.mean_log_probability * tokens + end) / (tokens + 1)
    return candidate._replace(mean_log_probability=mean, tokens=tokens + 1)


def released_ratio(probabilities: Probabilities) -> float:
    """Return the ratio of log-probabilities, as the released short form has it; it is inverted."""
    yes, no = (_log(seen(probabilities, token)) for token in (RETRIEVAL, NO_RETRIEVAL))
    return yes / (yes + no) if yes + no else _HALF


def remap_ratio(probabilities: Probabilities) -> float:
    """Return (p(yes) + p(continue)) / (p(yes) + p(no)), as the released long form; may exceed 1.

    A token that was not seen is not quite impossible, so that the ratio is always above 0.
    """
    tokens, least = (RETRIEVAL, NO_RETRIEVAL, CONTINUE), math.exp(_UNSEEN)
    yes, no, more = (seen(probabilities, token) or least for token in tokens)
    return (yes + more) / (yes + no)


def remapped(candidate: Candidate, delta: float) -> str:
    """Return the text of a continuation with `[No Retrieval]` rewritten, as the released long form.

    Each one whose `remap_ratio` is above `delta` becomes ``[Retrieval]``, none if that is 1. The
    last part always gets a ``[No Retrieval]`` that the model did not write; a text without any
    stays as it is.
    """
    if NO_RETRIEVAL not in candidate.text:
        return candidate.text
    positions = zip(_RETRIEVE.finditer(candidate.text), candidate.retrieve, strict=False)
    ratios = [remap_ratio(shares) for token, shares in positions if token[0] == NO_RETRIEVAL]
    enders = [RETRIEVAL if min(1.0, ratio) > delta else NO_RETRIEVAL for ratio in ratios]
    parts = candidate.text.split(NO_RETRIEVAL)
    enders += [NO_RETRIEVAL] * (len(parts) - len(enders))
    return "".join(part + ender for part, ender in zip(parts, enders, strict=False))


def released_answer(text: str) -> str:
    """Delete what the released short form deletes: 14 tokens, ends, line breaks."""
    return _without(text, *_DELETED, "\n", "<|endoftext|>")


def released_segment(text: str) -> str:
    """Delete what the released long form deletes: 14 tokens, the end, one leading space."""
    return _without(text, *_DELETED).removeprefix(" ")


def released_lead(text: str) -> str:
    """Remove one leading ``#`` or ``:``, as the released script does at the very end."""
    return text[1:] if text.startswith(("#", ":")) else text


def spaced(text: str) -> str:
    """Insert the space that is missing between a sentence's end and a word."""
    return _MISSING_SPACE.sub(r"\1 ", text)


def first_block(text: str) -> str:
    """Return the text up to its first empty line, as the released script cuts it."""
    return text.split("\n\n", 1)[0]


def _without(text: str, *deleted: str) -> str:
    for each in deleted:
        text = text.replace(each, "")
    return text


def _log(p: float) -> float:
    return max(_UNSEEN, math.log(p)) if p > 0 else _UNSEEN

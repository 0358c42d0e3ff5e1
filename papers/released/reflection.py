"""Self-RAG's released programs, faults included: the settings, the decision and the short form.

docs/method/paper-and-code.md says of each point what the papers say, what the code does, and what
ours does. `long_form` beside it is the other program. Not available: crashes.
"""

import math
from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from crag.papers.settings import PaperSettings
from crag.parts import Candidate, Continuation, Prefix, Probabilities, SegmentLimits
from crag.reflection.driver import Asked, Driver
from crag.reflection.retrieval_decision import by_ratio, chosen, first_choice
from crag.reflection.scoring import critique_of, normalised, retrieve_ratio, seen
from crag.reflection.short_form import short_form
from crag.reflection_tokens import (
    END,
    NO_RETRIEVAL,
    PARAGRAPH,
    RELEVANCE,
    RETRIEVAL,
    SUPPORT,
    UTILITY,
)
from crag.settings import Settings
from crag.state import Choice, Critique, Reflection


class ReleasedSettings(PaperSettings):
    """Settings of one run, with what only the papers vary; `RELEASED` reads them."""

    released: bool = False
    """Self-RAG: do as the released programs do: that of the short form, or that of the long form,
    which joins segments for the task `biography` in one way and for all others in another."""
    log_ratio: bool = False
    """As released, short form: decide by the ratio of log-probabilities, which is inverted."""
    ignore_no_support: bool = False
    """As released, long form: leave unsupported segments out of the answer."""

    @property
    def cites(self) -> bool:
        """Whether answers cite strips; no released program checks its answers."""
        return super().cites and not self.released

    @model_validator(mode="before")
    @classmethod
    def _count_utility_fully(cls, given: Any) -> Any:
        is_released = isinstance(given, Mapping) and given.get("released")
        return {**given, "weight_utility": 1.0} if is_released else given


def released_settings(values: Mapping[str, object]) -> ReleasedSettings:
    """Validate values of a table.

    Raises:
        SettingsError: a value is invalid.
    """
    return ReleasedSettings.model_validate(values)


DRAFT_TOKENS = 25
"""How long the draft is that the long form looks for ``[Retrieval]`` in."""
UNSEEN = -100.0
"""The logarithm of the probability of a token that the model did not report."""
_DELETED = (*SUPPORT, NO_RETRIEVAL, RETRIEVAL, *RELEVANCE, *PARAGRAPH, *UTILITY, END)
"""What both programs delete from a text, one after the other."""


def released_choice(prefix: Prefix, driver: Driver) -> Choice:
    """Decide before the first segment.

    The long form retrieves only if ``[Retrieval]`` is in a draft, too.
    """
    settings: Any = driver.settings
    if not settings.released or settings.retrieval_mode != "adaptive":
        return first_choice(prefix, driver)
    [decision] = driver.decide([prefix])
    if settings.form == "long":
        limits = SegmentLimits(DRAFT_TOKENS, whole_answer=True, is_draft=True)
        [draft] = driver.candidates([Continuation(prefix, None)], limits)
        if RETRIEVAL not in first_block(draft.text):
            return chosen("no_retrieve", f"a draft of {DRAFT_TOKENS} tokens lacks {RETRIEVAL}")
    ratio = released_ratio if settings.log_ratio else retrieve_ratio
    return by_ratio(ratio(decision.retrieve), settings)


def released_short_form(asked: Asked, driver: Driver) -> Reflection:
    """Answer as the released program: open answers that have a passage keep their tokens."""
    settings: Any = driver.settings
    if not settings.released:
        return short_form(asked, driver)

    def read(critique: Critique) -> str:
        is_kept = not asked.closed and critique["passage"] is not None
        return critique["text"] if is_kept else released_answer(critique["text"])

    asked = asked._replace(decided=asked.decided or released_choice(asked.prefix(), driver))
    record = short_form(asked, driver, score=_scored, read=read)
    record["answer"] = record["answer"].removeprefix("#" if record["answer"][:1] == "#" else ":")
    return record


def _scored(candidate: Candidate, passage: int | None, settings: Settings) -> Critique:
    """Score an answer: its end is one of its tokens, and a group that was not seen is half."""
    end, tokens = candidate.end_log_probability, candidate.tokens
    if end is not None:
        mean = (candidate.mean_log_probability * tokens + end) / (tokens + 1)
        candidate = candidate._replace(mean_log_probability=mean, tokens=tokens + 1)
    critique = critique_of(candidate, passage, settings)
    if passage is not None and not normalised("relevance", candidate.relevance):
        critique["relevance"] = 0.5
        critique["total"] += settings.weight_relevance / 2
    is_written = passage is not None and candidate.support is not None
    if is_written and not normalised("support", candidate.support):
        critique["support"] = 0.5
        critique["total"] += settings.weight_support / 2
    return critique


def released_ratio(probabilities: Probabilities) -> float:
    """Return the ratio of log-probabilities, as the released short form has it; it is inverted."""
    shares = (seen(probabilities, token) for token in (RETRIEVAL, NO_RETRIEVAL))
    yes, no = (max(UNSEEN, math.log(p)) if p > 0 else UNSEEN for p in shares)
    return yes / (yes + no) if yes + no else 0.5


def released_answer(text: str) -> str:
    """Delete what the released short form deletes: 14 tokens, ends, line breaks."""
    for each in (*_DELETED, "\n", "<|endoftext|>"):
        text = text.replace(each, "")
    return text


def released_segment(text: str) -> str:
    """Delete what the released long form deletes: 14 tokens, the end, one leading space."""
    for each in _DELETED:
        text = text.replace(each, "")
    return text.removeprefix(" ")


def first_block(text: str) -> str:
    """Return the text up to its first empty line, as the released program cuts it."""
    return text.split("\n\n", 1)[0]

"""How back ends make decisions and candidates: from tokens, or in place of a model with them."""

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from crag.errors import ModelError
from crag.parts import (
    Candidate,
    Continuation,
    Decision,
    Passage,
    Prefix,
    Probabilities,
    SegmentLimits,
)
from crag.reflection.prompt_format import candidate_prompt, decision_prompt
from crag.reflection.scoring import argmax
from crag.reflection_tokens import (
    CONTINUE,
    END,
    GROUPS,
    NO_RETRIEVAL,
    RETRIEVAL,
    RETRIEVE,
    TOKENS,
    Group,
)
from crag.state import Ending
from crag.text.untrusted import neutral

LONGEST_PASSAGE = 6000
"""Characters; about 1,500 tokens of English, of the 4,096 that Llama 2 reads."""
NO_LOG_PROBABILITY = 0.0
"""For text without log-probabilities: the sequence score is 1, which changes no ranking."""
_ENDINGS: Mapping[str, Ending] = {
    RETRIEVAL: "retrieve",
    NO_RETRIEVAL: "no_retrieve",
    CONTINUE: "continue",
    END: "end",
}
_logger = logging.getLogger(__name__)


# Of models that write the tokens.


class Position(NamedTuple):
    """One generated token, with what reflection needs of it."""

    token: str
    """A reflection token, `END` for whatever token ends the model's texts, empty for any other."""
    log_probability: float
    """Of the token that was generated."""
    seen: Mapping[str, float]
    """Log-probability of each reflection token that the back end received here."""

    def shares(self, group: Group) -> Probabilities:
        """Return the probabilities of a group's tokens that were seen here."""
        return {token: math.exp(self.seen[token]) for token in GROUPS[group] if token in self.seen}


class Row(NamedTuple):
    """What was generated for one prompt."""

    positions: list[Position]
    text: str
    """Up to the token that ends the segment, or of all tokens."""
    is_cut: bool
    """Whether the limit of tokens ended it, if no token did."""


class TokenReflection(ABC):
    """Reflect with a model that writes reflection tokens; a subclass generates.

    A long passage is cut at its end; the question never is. A model that lacks reflection tokens
    runs too: its critiques are neutral, and the sequence score decides.
    """

    _names: Mapping[int, str] | None = None
    """The reflection token of each number, and `END` for the one that ends texts, once known."""

    @abstractmethod
    def _generated(self, prompts: Sequence[str], most: int, stops: Collection[str]) -> list[Row]:
        """Return a row for each prompt, greedily, of at most so many tokens; counts as one call."""

    @property
    def approximation(self) -> str:
        """Empty for a model with the tokens; otherwise that its critiques are neutral."""
        missing = 0 if self._names is None else len({*TOKENS} - {*self._names.values()})
        lack = f"the model lacks {missing} of {len(TOKENS)} reflection tokens"
        return f"{lack}: critiques are neutral" if missing else ""

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the distribution of Retrieve tokens after each prefix, in order, by one call.

        Raises:
            ModelError: the model failed, or its reply cannot be used.
        """
        decisions: list[Decision] = []
        prompts = list(map(decision_prompt, prefixes))
        for positions, text, _ in self._generated(prompts, 1, ()) if prompts else ():
            if not positions:
                raise ModelError("reflection", "empty", "the reply has no token to decide by")
            emitted = text or positions[0].token
            decisions.append(Decision(positions[0].shares("retrieve"), emitted))
        return decisions

    def candidates(
        self, continuations: Sequence[Continuation], limits: SegmentLimits
    ) -> list[Candidate]:
        """Return one greedy candidate for each continuation, in order, by one call.

        Raises:
            ModelError: the model failed, or its reply cannot be used.
        """
        stops = () if limits.whole_answer else RETRIEVE
        prompts = [
            candidate_prompt(prefix, _cut(passage), is_draft=limits.is_draft)
            for prefix, passage in continuations
        ]
        rows = self._generated(prompts, limits.max_tokens, stops) if prompts else []
        return [
            _candidate(row, has_passage=passage is not None, stops=stops)
            for row, (_, passage) in zip(rows, continuations, strict=True)
        ]


def _candidate(row: Row, *, has_passage: bool, stops: Collection[str]) -> Candidate:
    positions, text, is_cut = row
    end = next((i for i, at in enumerate(positions) if at.token in {END, *stops}), len(positions))
    kept, ender = positions[:end], next(iter(positions[end:]), None)
    otherwise: Ending = "length" if is_cut else "end"

    def emitted(group: Group) -> Probabilities | None:
        return next((at.shares(group) for at in kept if at.token in GROUPS[group]), None)

    first = positions[0].shares("relevance") if positions else {}
    return Candidate(
        text=text,
        relevance=first if has_passage else None,
        support=emitted("support"),
        utility=emitted("utility"),
        mean_log_probability=min(0.0, math.fsum(at.log_probability for at in kept) / max(1, end)),
        tokens=end,
        ending=_ENDINGS[ender.token] if ender else otherwise,
        end_log_probability=ender.log_probability if ender else None,
        retrieve=tuple(at.shares("retrieve") for at in kept if at.token in RETRIEVE),
    )


def _cut(passage: Passage | None) -> Passage | None:
    """Return a passage without what is beyond `LONGEST_PASSAGE`, cut between words."""
    if passage is None or len(passage.text) <= LONGEST_PASSAGE:
        return passage
    text = passage.text[:LONGEST_PASSAGE].rsplit(maxsplit=1)[0]
    _logger.warning("the passage %r is cut to %d characters", passage.title, len(text))
    return passage._replace(text=text)


# In place of such a model.


def prose(text: str) -> str:
    """Return a segment's words on one line, with nothing that reads as a token or a citation."""
    return " ".join(neutral(text).split())


def shortened(text: str, limits: SegmentLimits) -> tuple[str, bool]:
    """Return at most as many words as the segment may have tokens, and whether any were cut off.

    A word has at least one token, so a text of few enough tokens is never cut.
    """
    words = text.split()
    return " ".join(words[: limits.max_tokens]), len(words) > limits.max_tokens


def candidate_of(  # noqa: PLR0913 - what a model with the tokens says by them
    text: str,
    *,
    relevance: Probabilities | None,
    support: Probabilities | None,
    utility: Probabilities | None,
    ending: Ending,
    sure: bool = True,
    mean_log_probability: float = NO_LOG_PROBABILITY,
    quoted: bool = False,
) -> Candidate:
    """Return a candidate that reads ``[Relevant]text[Fully supported][Utility:5]``.

    The tokens are the likeliest of each group.
    """
    after = argmax("support", support) + argmax("utility", utility)
    return Candidate(
        argmax("relevance", relevance) + text + after, relevance, support, utility,
        mean_log_probability, len(text.split()), ending, sure=sure, quoted=quoted,
    )  # fmt: skip


def nothing(relevance: Probabilities | None) -> Candidate:
    """Return a candidate without text; its sequence score is 0."""
    return Candidate("", relevance, None, None, NO_LOG_PROBABILITY, 0, "end")

"""How back ends make decisions and candidates: from tokens, or in place of a model with them."""

import logging
import math
import re
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from langchain_core.messages import BaseMessage

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

NO_LOG_PROBABILITY = 0.0
"""For text without a language model, or from a server without log-probabilities: the sequence score
is 1 for every text, which changes no ranking."""
_ENDINGS: Mapping[str, Ending] = {
    RETRIEVAL: "retrieve",
    NO_RETRIEVAL: "no_retrieve",
    CONTINUE: "continue",
    END: "end",
}
_logger = logging.getLogger(__name__)
_LETTERS = re.compile(r"\w+")
_TEXT = re.compile(r'"text"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


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

    A passage that does not fit is cut at its end, between words; the question never is. A model
    that lacks reflection tokens runs too: its critiques are neutral, and the sequence score
    decides.
    """

    _names: Mapping[int, str] | None = None
    """The reflection token of each number, and `END` for the one that ends texts, once known."""

    @abstractmethod
    def load(self) -> None:
        """Get ready now, so that errors show before a run.

        Raises:
            ModelError: the model cannot be had, or lacks a reflection token that it needs.
        """

    @abstractmethod
    def _generated(self, prompts: Sequence[str], most: int, stops: Collection[str]) -> list[Row]:
        """Return a row for each prompt, greedily, of at most so many tokens; counts as one call."""

    @abstractmethod
    def _fits(self, prefix: Prefix, passage: Passage, most: int) -> bool:
        """Return whether a passage can be read, with so many tokens generated after it."""

    @property
    def approximation(self) -> str:
        """Empty for a model with the tokens; otherwise that its critiques are neutral."""
        missing = set(TOKENS) - set((self._names or {}).values()) if self._names is not None else ()
        if not missing:
            return ""
        lack = f"lacks {len(missing)} of {len(TOKENS)} reflection tokens"
        return f"the model {lack}: critiques are neutral"

    def decide(self, prefixes: Sequence[Prefix]) -> list[Decision]:
        """Return the distribution of Retrieve tokens after each prefix, in order, by one call.

        Raises:
            ModelError: the model failed, or its reply cannot be used.
        """
        decisions: list[Decision] = []
        for positions, text, _ in self._rows(list(map(decision_prompt, prefixes)), 1, ()):
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
        if continuations:
            self.load()
        stops = () if limits.whole_answer else RETRIEVE
        prompts = [
            candidate_prompt(prefix, self._shown(prefix, passage, limits), is_draft=limits.is_draft)
            for prefix, passage in continuations
        ]
        rows = self._rows(prompts, limits.max_tokens, stops)
        return [
            _candidate(row, has_passage=passage is not None, stops=stops)
            for row, (_, passage) in zip(rows, continuations, strict=True)
        ]

    def _rows(self, prompts: Sequence[str], most: int, stops: Collection[str]) -> list[Row]:
        return self._generated(prompts, most, stops) if prompts else []

    def _shown(
        self, prefix: Prefix, passage: Passage | None, limits: SegmentLimits
    ) -> Passage | None:
        most = limits.max_tokens
        if passage is None or self._fits(prefix, passage, most):
            return passage
        cut = shortest_cut(passage, lambda shown: self._fits(prefix, shown, most))
        _logger.warning("the passage %r is cut to %d characters", passage.title, len(cut.text))
        return cut


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


def shortest_cut(passage: Passage, fits: Callable[[Passage], bool]) -> Passage:
    """Return the passage with the longest beginning of its text that fits, cut between words.

    The text is empty where not even its first character fits.
    """
    text, ends = passage.text, range(1, len(passage.text) + 1)
    most = bisect_left(ends, True, key=lambda end: not fits(passage._replace(text=text[:end])))  # noqa: FBT003 - the key's
    kept = text[:most]
    is_torn = most < len(text) and not text[most].isspace() and len(kept.split()) > 1
    return passage._replace(text=(kept.rsplit(maxsplit=1)[0] if is_torn else kept).rstrip())


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


def written(
    text: str,
    *,
    relevance: Probabilities | None,
    support: Probabilities | None,
    utility: Probabilities | None,
) -> str:
    """Return ``[Relevant]text[Fully supported][Utility:5]`` with the likeliest token of each."""
    after = argmax("support", support) + argmax("utility", utility)
    return argmax("relevance", relevance) + text + after


def nothing(relevance: Probabilities | None) -> Candidate:
    """Return a candidate without text; its sequence score is 0."""
    return Candidate("", relevance, None, None, NO_LOG_PROBABILITY, 0, "end")


# Of chat models that reply in JSON, and whose server lists log-probabilities.


class Token(NamedTuple):
    """One token of a reply."""

    text: str
    log_probability: float
    others: Mapping[str, float]
    """Log-probabilities of the likeliest tokens at this position, mostly with this one."""
    start: int
    """Where it stands in the reply."""


def tokens_of(message: BaseMessage | None) -> list[Token]:
    """Return the tokens of a reply; none if the server sent none, or in an unknown form.

    What OpenAI's protocol calls ``logprobs`` arrives in the message's metadata.
    """
    metadata = message.response_metadata.get("logprobs") if message is not None else None
    entries = metadata.get("content") if isinstance(metadata, Mapping) else None
    tokens: list[Token] = []
    start = 0
    try:
        for entry in entries or ():
            text, listed = str(entry["token"]), [entry, *(entry.get("top_logprobs") or ())]
            others = {one["token"]: float(one["logprob"]) for one in listed}
            if any(map(math.isnan, others.values())):
                return []
            tokens.append(Token(text, others[text], others, start))
            start += len(text)
    except (KeyError, TypeError, ValueError):
        return []
    return tokens


def of_labels(
    tokens: Sequence[Token], field: str, labels: Mapping[str, str]
) -> dict[str, float] | None:
    """Return the probability of each label of a field, as far as it was seen, or None.

    `labels` maps a label, as written in the JSON, to its name in the result. A label is known by
    the first token of its value, so no two may begin alike. Quotation marks within a text are
    escaped there, so that it cannot hold a field.
    """
    reply = "".join(token.text for token in tokens)
    place = max((one.end() for one in re.finditer(rf'"{field}"\s*:\s*"?', reply)), default=-1)
    shares: dict[str, float] = {}
    for token in tokens:
        before = token.text[: max(0, place - token.start)]
        if not token.start <= place < token.start + len(token.text):
            continue
        for text, log_probability in token.others.items():
            rest = text.removeprefix(before) if text.startswith(before) else ""
            letters = _LETTERS.match(rest.lstrip(' "'))
            beginning = letters[0].casefold() if letters else None
            fitting = [
                name for label, name in labels.items() if beginning and label.startswith(beginning)
            ]
            if len(fitting) == 1:
                shares[fitting[0]] = shares.get(fitting[0], 0.0) + math.exp(log_probability)
    return {name: min(1.0, share) for name, share in shares.items()} or None


def of_text(tokens: Sequence[Token]) -> tuple[float, int] | None:
    """Return the mean log-probability of the tokens of the field ``text``, and their number."""
    *_, field = (None, *_TEXT.finditer("".join(token.text for token in tokens)))
    first, last = field.span(1) if field else (0, 0)
    inside = [
        token.log_probability
        for token in tokens
        if token.start < last and token.start + len(token.text) > first
    ]
    return (min(0.0, math.fsum(inside) / len(inside)), len(inside)) if inside else None

"""How back ends make decisions and candidates: from tokens, or in place of a model with them."""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from crag.parts import Candidate, Decision, Passage, Probabilities, SegmentLimits
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
_LETTERS = re.compile(r"\w+")
_TEXT = re.compile(r'"text"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


# Of models that write the tokens.


def approximation_of(names: Collection[str]) -> str:
    """Return what a model lacks among the tokens `names` that it has; empty if it has all."""
    missing = sum(token not in names for token in TOKENS)
    if not missing:
        return ""
    return f"the model lacks {missing} of {len(TOKENS)} reflection tokens: critiques are neutral"


class Position(NamedTuple):
    """One generated token, with what reflection needs of it."""

    token: str
    """A reflection token, `END` for whatever token ends the model's texts, empty for any other."""
    log_probability: float
    """Of the token that was generated."""
    seen: Mapping[str, float]
    """Log-probability of each reflection token that the back end received here."""


def length(positions: Sequence[Position], limits: SegmentLimits) -> int:
    """Return how many tokens belong to the segment: those before the one that ends it."""
    enders = {END} if limits.whole_answer else _ENDINGS.keys()
    return next((i for i, at in enumerate(positions) if at.token in enders), len(positions))


def read_candidate(
    positions: Sequence[Position],
    text: str,
    limits: SegmentLimits,
    *,
    has_passage: bool,
    otherwise: Ending,
) -> Candidate:
    """Read a candidate from its tokens; `text` is that of the segment's `length` tokens.

    `otherwise` is the ending if no token marks one.
    """
    end = length(positions, limits)
    kept, ender = positions[:end], next(iter(positions[end:]), None)
    first = _probabilities(positions[0], "relevance") if positions else {}
    total = math.fsum(at.log_probability for at in kept)
    return Candidate(
        text=text,
        relevance=first if has_passage else None,
        support=_where_emitted(kept, "support"),
        utility=_where_emitted(kept, "utility"),
        mean_log_probability=min(0.0, total / max(1, end)),
        tokens=end,
        ending=_ENDINGS[ender.token] if ender else otherwise,
        end_log_probability=ender.log_probability if ender else None,
        retrieve=tuple(_probabilities(at, "retrieve") for at in kept if at.token in RETRIEVE),
    )


def read_decision(position: Position, emitted: str) -> Decision:
    """Read a decision from the first token after a prefix, whose text is `emitted`."""
    return Decision(_probabilities(position, "retrieve"), emitted)


def shortest_cut(passage: Passage, fits: Callable[[Passage], bool]) -> Passage:
    """Return the passage with the longest beginning of its text that fits, cut between words.

    The text is empty where not even its first character fits.
    """
    if fits(passage):
        return passage
    text, fitting, most = passage.text, 0, len(passage.text)
    while fitting < most:
        middle = (fitting + most + 1) // 2
        if fits(passage._replace(text=text[:middle])):
            fitting = middle
        else:
            most = middle - 1
    kept = text[:fitting]
    is_torn = not text[fitting : fitting + 1].isspace() and len(kept.split()) > 1
    return passage._replace(text=(kept.rsplit(maxsplit=1)[0] if is_torn else kept).rstrip())


def _probabilities(position: Position, group: Group) -> Probabilities:
    seen = position.seen
    return {token: math.exp(seen[token]) for token in GROUPS[group] if token in seen}


def _where_emitted(positions: Sequence[Position], group: Group) -> Probabilities | None:
    emitted = (_probabilities(at, group) for at in positions if at.token in GROUPS[group])
    return next(emitted, None)


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


def tokens_of(message: BaseMessage | None) -> list[Token]:
    """Return the tokens of a reply; none if the server sent none, or in an unknown form.

    What OpenAI's protocol calls ``logprobs`` arrives in the message's metadata.
    """
    metadata = message.response_metadata.get("logprobs") if message is not None else None
    entries = metadata.get("content") if isinstance(metadata, Mapping) else None
    try:
        return [_token(entry) for entry in entries or ()]
    except (KeyError, TypeError, ValueError):
        return []


def of_labels(
    tokens: Sequence[Token], field: str, labels: Mapping[str, str]
) -> dict[str, float] | None:
    """Return the probability of each label of a field, as far as it was seen, or None.

    `labels` maps a label, as written in the JSON, to its name in the result. A label is known by
    the first token of its value, so no two may begin alike. Quotation marks within a text are
    escaped there, so that it cannot hold a field.
    """
    reply = "".join(token.text for token in tokens)
    *_, field_start = (None, *re.finditer(rf'"{field}"\s*:\s*"?', reply))
    if field_start is None:
        return None
    seen: dict[str, float] = {}
    for beginning, log_probability in _at(tokens, field_start.end()):
        fitting = [name for label, name in labels.items() if label.startswith(beginning)]
        if len(fitting) == 1:
            seen[fitting[0]] = seen.get(fitting[0], 0.0) + math.exp(log_probability)
    return {name: min(1.0, p) for name, p in seen.items()} or None


def of_text(tokens: Sequence[Token]) -> tuple[float, int] | None:
    """Return the mean log-probability of the tokens of the field ``text``, and their number."""
    *_, text_field = (None, *_TEXT.finditer("".join(token.text for token in tokens)))
    if text_field is None:
        return None
    first, last = text_field.span(1)
    inside = [
        token.log_probability
        for start, token in _placed(tokens)
        if start < last and start + len(token.text) > first
    ]
    return (min(0.0, math.fsum(inside) / len(inside)), len(inside)) if inside else None


def _token(entry: Any) -> Token:
    text, own = str(entry["token"]), min(0.0, float(entry["logprob"]))
    if math.isnan(float(entry["logprob"])):
        raise ValueError(text)
    others = {
        one["token"]: min(0.0, float(one["logprob"])) for one in entry.get("top_logprobs") or ()
    }
    return Token(text, own, {text: own} | others)


def _placed(tokens: Sequence[Token]) -> Iterator[tuple[int, Token]]:
    start = 0
    for token in tokens:
        yield start, token
        start += len(token.text)


def _at(tokens: Sequence[Token], position: int) -> Iterator[tuple[str, float]]:
    """Return the alternatives at a position of the reply: beginnings of values."""
    for start, token in _placed(tokens):
        if start <= position < start + len(token.text):
            before = token.text[: position - start]
            for text, log_probability in token.others.items():
                rest = text[len(before) :] if text.startswith(before) else ""
                letters = _LETTERS.match(rest.lstrip(' "'))
                if letters:
                    yield letters[0].casefold(), log_probability

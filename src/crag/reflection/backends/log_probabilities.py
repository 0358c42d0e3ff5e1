"""Probabilities of labels within a JSON reply, from the log-probabilities of its tokens.

What OpenAI's protocol calls ``logprobs`` arrives in a message's metadata: each token of the reply
with its log-probability and, at that position, the likeliest others.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

_LETTERS = re.compile(r"\w+")
_TEXT = re.compile(r'"text"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)


class Token(NamedTuple):
    """One token of a reply."""

    text: str
    log_probability: float
    others: Mapping[str, float]
    """Log-probabilities of the likeliest tokens at this position, mostly with this one."""


def tokens_of(message: BaseMessage | None) -> list[Token]:
    """Return the tokens of a reply; none if the server sent none, or in an unknown form."""
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
    own = str(entry["token"]), _number(entry["logprob"])
    others = {str(o["token"]): _number(o["logprob"]) for o in entry.get("top_logprobs") or ()}
    return Token(*own, {own[0]: own[1]} | others)


def _number(value: Any) -> float:
    number = float(value)
    if math.isnan(number):
        raise ValueError(value)
    return min(0.0, number)


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

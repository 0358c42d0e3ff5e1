"""Completions as OpenAI-compatible servers send them, read as positions."""

import logging
import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from crag.errors import ModelError
from crag.reflection.backends.reading import LARGEST_GROUP, Position
from crag.reflection.tokens import END, GROUPS, TOKENS

Names = Mapping[str, str]
"""The reflection token, or `END`, of each token as the server writes it in its replies."""
AS_ID = "token_id:"
"""What vLLM puts before the number of a token that it was asked to name by number."""
_UNSEEN_SHARE = 0.01
_logger = logging.getLogger(__name__)


class _LogProbabilities(BaseModel):
    """Of the tokens of one completion; the lists are parallel."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None] = Field(default_factory=list)


class Completion(BaseModel):
    """One completion of a reply."""

    text: str
    finish_reason: str | None
    logprobs: _LogProbabilities


def read_completion(model: str, text: object, information: Mapping[str, Any] | None) -> Completion:
    """Read a completion from its text and what LangChain kept beside it.

    Raises:
        ModelError: it has no log-probabilities, or is not of the known form.
    """
    found = dict(information or {})
    if found.get("logprobs") is None:
        problem = (
            "the reply has no log-probabilities, without which there is no reflection. Use a "
            "server whose completions have them (vLLM does), or prompted reflection"
        )
        raise ModelError(model, "failed", problem)
    try:
        return Completion.model_validate(found | {"text": text})
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        problem = f"the reply is no completion with log-probabilities: {where} is malformed"
        raise ModelError(model, "failed", problem) from None


def positions_of(model: str, completion: Completion, names: Names) -> list[Position]:
    """Return the generated tokens; a reflection token that the server did not list is not seen.

    Raises:
        ModelError: the server lists fewer tokens at a position than the largest group has.
    """
    told = completion.logprobs
    if not len(told.tokens) == len(told.token_logprobs) == len(told.top_logprobs):
        problem = "the reply is malformed: its lists of log-probabilities differ in length"
        raise ModelError(model, "failed", problem)
    listed = max((len(top or {}) for top in told.top_logprobs), default=LARGEST_GROUP)
    if listed < LARGEST_GROUP:
        problem = (
            f"the server lists {listed} log-probabilities for each token, but a group of "
            f"reflection tokens has {LARGEST_GROUP}. Allow more (vLLM: --max-logprobs 20)"
        )
        raise ModelError(model, "failed", problem)
    return [
        _position(token, own, top or {}, names)
        for token, own, top in zip(told.tokens, told.token_logprobs, told.top_logprobs, strict=True)
    ]


def read_names(model: str, echoes: Sequence[Sequence[str]]) -> dict[str, str]:
    """Learn how a server names reflection tokens from its echo of `ECHOED`, one list for each.

    An echo is what the tokenizer puts before every text, the token, and one generated token.

    Raises:
        ModelError: a token is not a single one there, or the server does not echo.
    """
    if any(len(echo) < 2 for echo in echoes):  # noqa: PLR2004 - the token and one generated
        problem = (
            "the server does not echo prompts, so how it names reflection tokens cannot be "
            "learned. Give `tokenizer`: a folder or hub id with the model's tokenizer"
        )
        raise ModelError(model, "unknown", problem)
    required = echoes[: len(TOKENS)]
    common = len(
        list(takewhile(lambda column: len(set(column)) == 1, zip(*required, strict=False)))
    )
    pieces = [list(echo[common:-1]) for echo in echoes]
    split = [token for token, piece in zip(TOKENS, pieces, strict=False) if len(piece) != 1]
    if split or len({piece[0] for piece in pieces[: len(TOKENS)]}) < len(TOKENS):
        problem = (
            f"its tokenizer has no single token for {', '.join(split) or 'each reflection token'}; "
            "serve a model that was trained with Self-RAG's tokens (such as "
            "selfrag/selfrag_llama2_7b), or use prompted reflection"
        )
        raise ModelError(model, "unknown", problem)
    return {piece[0]: token for token, piece in zip(ECHOED, pieces, strict=True) if len(piece) == 1}


ECHOED = (*TOKENS, END)
"""The prompts whose echo `read_names` reads."""


def names_by_number(ids: Mapping[int, str]) -> dict[str, str]:
    """Return the names for a known tokenizer, by number and for servers that tell strings."""
    return {f"{AS_ID}{number}": token for number, token in ids.items()} | {
        token: token for token in ids.values()
    }


def stop_ids(names: Names, stops: Sequence[str]) -> list[int]:
    """Return the numbers of the tokens to stop at, as far as the server tells numbers."""
    return [
        int(name.removeprefix(AS_ID))
        for name, token in names.items()
        if token in stops and name.startswith(AS_ID)
    ]


def _position(token: str, own: float | None, top: Mapping[str, float], names: Names) -> Position:
    reflecting = {names[name]: value for name, value in top.items() if name in names}
    if token in names and own is not None:
        reflecting[names[token]] = own
    position = Position(names.get(token, ""), min(0.0, own or 0.0), reflecting)
    _warn_of_unseen(position, min(top.values(), default=-math.inf))
    return position


def _warn_of_unseen(position: Position, least: float) -> None:
    """Say when a member that is missing may matter: its log-probability is at most `least`."""
    for group in GROUPS.values():
        mass = sum(math.exp(position.seen[token]) for token in group if token in position.seen)
        missing = [token for token in group if token not in position.seen]
        if position.token in group and missing and math.exp(least) > _UNSEEN_SHARE * mass:
            _logger.warning("%s not listed, each at most %.3g", missing, math.exp(least))

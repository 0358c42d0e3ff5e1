"""How llama.cpp's server differs: it does not echo, and lists tokens in a form of its own."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
from pydantic import BaseModel, ValidationError

from crag.reflection_tokens import END, TOKENS

AS_ID = "token_id:"
"""What vLLM puts before the number of a token that it was asked to name by number."""
KEPT: Mapping[str, Any] = {"preserved_tokens": list(TOKENS)}
"""An option that keeps special tokens in the text, as ``skip_special_tokens`` does elsewhere."""
NO_ECHO = "no echo is supported"
"""What llama.cpp's server says when it is asked to echo a prompt."""


class _Listed(BaseModel):
    id: int
    logprob: float
    top_logprobs: list["_Listed"] = []


class _Content(BaseModel):
    content: list[_Listed]


class _TokenPiece(BaseModel):
    id: int
    piece: str | list[int]
    """Bytes, if they are no UTF-8 by themselves."""


class _Pieces(BaseModel):
    tokens: list[_TokenPiece]


class _Properties(BaseModel):
    eos_token: str


def parallel_lists(information: Any) -> Any:
    """Return the log-probabilities of a completion in OpenAI's form; in any other as they are."""
    try:
        listed = _Content.model_validate(information).content
    except ValidationError:
        return information
    return {
        "tokens": [f"{AS_ID}{token.id}" for token in listed],
        "token_logprobs": [token.logprob for token in listed],
        "top_logprobs": [
            {f"{AS_ID}{top.id}": top.logprob for top in token.top_logprobs} for token in listed
        ],
    }


def ask_names(base_url: str, model: str, key: str, timeout: float) -> dict[int, str] | None:
    """Ask the server's tokenizer for the number of each reflection token that it knows, and `END`.

    `base_url` ends with ``/v1``; beside it are ``/props`` and ``/tokenize``. None if the replies
    are not llama.cpp's.
    """
    place = urlsplit(base_url)
    root = urlunsplit(place._replace(path=place.path.rstrip("/").removesuffix("/v1")))
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with httpx.Client(timeout=timeout, headers=headers) as client:
            reply = client.get(f"{root}/props", params={"model": model}).raise_for_status()
            end = _Properties.model_validate_json(reply.content).eos_token
            request = {
                "model": model, "content": "".join((*TOKENS, end)), "with_pieces": True,
                "add_special": False, "parse_special": True,
            }  # fmt: skip
            reply = client.post(f"{root}/tokenize", json=request).raise_for_status()
        pieces = _Pieces.model_validate_json(reply.content).tokens
    except (httpx.HTTPError, ValidationError):
        return None
    names = {token: token for token in TOKENS} | {end: END}
    known = [(token.id, token.piece) for token in pieces if isinstance(token.piece, str)]
    return {number: names[piece] for number, piece in known if piece in names}

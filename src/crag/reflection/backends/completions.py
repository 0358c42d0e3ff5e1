"""Reflection by a model with the tokens behind an OpenAI-compatible completions server."""

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

from crag.answering.model_calls import reason_of
from crag.errors import ModelError
from crag.events import redact
from crag.plain import said, shortened
from crag.reflection.backends.candidates import Position, Row, TokenReflection
from crag.reflection.driver import spend
from crag.reflection_tokens import END, GROUPS, TOKENS, tokens_missing
from crag.state import Usage

if TYPE_CHECKING:
    from openai import OpenAI

TOP = 20
"""Log-probabilities asked for at each position: vLLM's default limit."""
AS_ID = "token_id:"
"""What vLLM puts before the number of a token that it was asked to name by number."""
_LARGEST_GROUP = max(map(len, GROUPS.values()))
_SPECIAL: Mapping[str, Any] = {
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "return_tokens_as_token_ids": True,
    "include_stop_str_in_output": True,
    "preserved_tokens": list(TOKENS),  # llama.cpp's word for the first.
}
_LONGEST = 300
"""Characters of the server's own words."""
_ADVICE = (
    "Check that it runs and serves this model, CRAG_REFLECTION_URL, its key in OPENAI_API_KEY, and "
    "that it lists 20 log-probabilities (vLLM: --max-logprobs 20)"
)


class CompletionsReflection(TokenReflection):
    """Reflect with a model that vLLM or llama.cpp's server completes texts with.

        vllm serve selfrag/selfrag_llama2_7b --max-logprobs 20
        CompletionsReflection("selfrag/selfrag_llama2_7b", base_url="http://localhost:8000/v1")

    All candidates of a retrieval round are one request, whatever their prefixes, and so are all
    decisions. The server returns the `top` likeliest tokens of each position; a member of a group
    that is not among them is absent from the probabilities. On first use the server's tokenizer is
    asked for the number of each token. llama.cpp's server cannot stop at Retrieve tokens: the text
    that follows them is cut off here.

    Without `api_key` it is taken from OPENAI_API_KEY; servers of one's own need none. Without
    `tokens_required` a model may lack reflection tokens.

    Raises:
        ModelError: on use, for any failure; the message says what to do.
    """

    def __init__(  # noqa: PLR0913 - each is an option
        self,
        model: str,
        *,
        base_url: str,
        api_key: str | None = None,
        top: int = TOP,
        timeout: float = 60.0,
        retries: int = 2,
        tokens_required: bool = True,
    ) -> None:
        self._model, self._base_url = model, base_url
        self._host = urlsplit(base_url).hostname or ""
        """The server's name, without what a URL may hold beside it."""
        self._key = api_key or os.environ.get("OPENAI_API_KEY", "")
        self._top, self._timeout, self._retries = top, timeout, retries
        self._tokens_required = tokens_required

    def __repr__(self) -> str:
        return f"CompletionsReflection({self._model!r}, {self._host!r})"

    def _generated(self, prompts: Sequence[str], most: int, stops: Collection[str]) -> list[Row]:
        from openai import OpenAIError

        asked = {
            "model": self._model, "prompt": list(prompts), "max_tokens": most, "temperature": 0,
            "logprobs": self._top, **_SPECIAL,
        }  # fmt: skip
        try:
            names = self._names = self._names or self._asked_names()
            if numbers := [number for number, token in names.items() if token in stops]:
                asked["stop_token_ids"] = numbers
            reply: Any = self._client.post("/completions", body=asked, cast_to=object)
            rows = [self._read(choice, stops) for choice in reply["choices"]]
            counted = reply.get("usage") or {}
        except (OpenAIError, ValueError, TypeError, KeyError, AttributeError) as error:
            # A malformed reply raises any of these; the cause may spell out the key.
            raise self._error(error) from None
        named = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
        tokens = {ours: int(counted.get(one) or 0) for ours, one in named.items() if counted}
        spend(cast("Usage", {"llm_calls": 1, **tokens}))
        return rows

    def _read(self, choice: Mapping[str, Any], stops: Collection[str]) -> Row:
        """Read a completion; reflection tokens that the server did not list are absent."""
        logs = choice["logprobs"]
        if logs is None:
            raise ValueError("no log-probabilities, without which there is no reflection")
        listed, names = _listed(logs), self._names or {}
        most = max((len(top) for _, _, top in listed), default=_LARGEST_GROUP)
        if most < _LARGEST_GROUP:
            raise ValueError(f"{most} log-probabilities for each token, fewer than a group has")
        positions: list[Position] = []
        for token, own, top in listed:
            numbered = {int(name.removeprefix(AS_ID)): p for name, p in top.items()}
            seen = {names[number]: p for number, p in numbered.items() if number in names}
            name = names.get(int(token.removeprefix(AS_ID)), "")
            if name and own is not None:
                seen[name] = own
            positions.append(Position(name, min(0.0, own or 0.0), seen))
        # No text spells the token that ends the segment by chance.
        ender = next((at.token for at in positions if at.token in {END, *stops}), END)
        text = choice["text"].partition(ender)[0]
        return Row(positions, text, is_cut=choice["finish_reason"] != "stop")

    def _asked_names(self) -> dict[int, str]:
        """Ask the server for the number of each reflection token, and of the one that ends texts.

        vLLM and llama.cpp's server have the path ``/tokenize`` beside ``/v1``, each with its own
        name for the text; only the latter says at ``/props`` which token ends a text.
        """
        from openai import APIStatusError

        place, end = urlsplit(self._base_url), END
        root = urlunsplit(place._replace(path=place.path.rstrip("/").removesuffix("/v1")))
        options = {"model": self._model, "add_special_tokens": False, "parse_special": True}
        with suppress(APIStatusError):
            about: Any = {"params": {"model": self._model}}
            properties: Any = self._client.get(f"{root}/props", options=about, cast_to=object)
            end = properties["eos_token"]
        names: dict[int, str] = {}
        for text in (*TOKENS, end):
            asked = {**options, "prompt": text, "content": text}
            reply: Any = self._client.post(f"{root}/tokenize", body=asked, cast_to=object)
            if len(numbers := reply["tokens"]) == 1:
                names[int(numbers[0])] = END if text == end else text
        missing = [token for token in TOKENS if token not in names.values()]
        if missing and self._tokens_required:
            raise tokens_missing(self._model, missing)
        return names

    @cached_property
    def _client(self) -> "OpenAI":
        from openai import OpenAI

        return OpenAI(
            base_url=self._base_url, api_key=self._key or "not-needed", timeout=self._timeout,
            max_retries=self._retries,
        )  # fmt: skip

    def _error(self, error: Exception) -> ModelError:
        """Return the error for a failed request or its reply, without the key in it."""
        words = redact(f"{type(error).__name__}: {said(reason_of(error))}")
        words = words.replace(self._key, "[secret]") if self._key else words
        detail = f"{self._host} cannot be used ({shortened(words, _LONGEST)}). {_ADVICE}"
        return ModelError(self._model, "failed", detail)


def _listed(logs: Any) -> list[tuple[str, float | None, Mapping[str, float]]]:
    """Return the tokens of a completion; llama.cpp's server lists them in a form of its own."""
    if "content" not in logs:
        tops = [top or {} for top in logs["top_logprobs"]]
        return list(zip(logs["tokens"], logs["token_logprobs"], tops, strict=True))
    return [
        (
            f"{AS_ID}{token['id']}",
            token["logprob"],
            {f"{AS_ID}{top['id']}": top["logprob"] for top in token.get("top_logprobs", [])},
        )
        for token in logs["content"]
    ]

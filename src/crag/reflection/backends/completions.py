"""Reflection by a model with the tokens behind an OpenAI-compatible completions server."""

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit, urlunsplit

import httpx
from langgraph.constants import TAG_NOSTREAM

from crag.answering.model_calls import reason_of
from crag.errors import ModelError, ModelProblem
from crag.events import redact
from crag.plain import said, shortened
from crag.reflection.backends.candidates import Position, Row, TokenReflection
from crag.reflection.spending import spend
from crag.reflection_tokens import END, GROUPS, TOKENS, tokens_missing
from crag.state import Usage

if TYPE_CHECKING:
    from langchain_openai import OpenAI

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
_ALL = 1_000_000
"""Prompts in one request."""
_LONGEST = 300
"""Characters of the server's own words."""
_KEY: tuple[ModelProblem, str] = "key", "refused the key. Check OPENAI_API_KEY or `api_key`"
_UNKNOWN = "does not serve it under this name, or not at this URL: /v1/completions, /tokenize"
_ADVICE: Mapping[int | None, tuple[ModelProblem, str]] = {
    400: ("failed", "refused the request. Raise --max-logprobs, or shorten the question"),
    401: _KEY,
    403: _KEY,
    404: ("unknown", _UNKNOWN),
}
"""The kind of a failure, and what the server did and what to do, by the status of its reply."""
_OTHERWISE: tuple[ModelProblem, str] = (
    "failed", "failed, or did not reply in time. Check `base_url`, that it runs, and its log",
)  # fmt: skip


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

    def load(self) -> None:
        """Ask the server for the tokens now, so that errors show before a run.

        Raises:
            ModelError: it cannot be asked, or its model lacks a reflection token.
        """
        if self._names is None:
            self._names = self._asked_names()

    def _generated(self, prompts: Sequence[str], most: int, stops: Collection[str]) -> list[Row]:
        from openai import OpenAIError

        self.load()
        further = dict(_SPECIAL)
        if numbers := [number for number, token in (self._names or {}).items() if token in stops]:
            further["stop_token_ids"] = numbers
        try:
            result = self._openai.generate(list(prompts), max_tokens=most, extra_body=further)
            generated = [one for several in result.generations for one in several]
            rows = [self._read(one.text, one.generation_info or {}, stops) for one in generated]
        except (OpenAIError, ValueError, TypeError, KeyError, AttributeError) as error:
            # A malformed reply raises any of these; the cause may spell out the key.
            raise self._error(error) from None
        counted = (result.llm_output or {}).get("token_usage") or {}
        names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
        tokens = {ours: int(counted.get(one) or 0) for ours, one in names.items() if counted}
        spend(cast("Usage", {"llm_calls": 1, **tokens}))
        return rows

    def _read(self, text: str, information: Mapping[str, Any], stops: Collection[str]) -> Row:
        """Read a completion; reflection tokens that the server did not list are absent."""
        logs = information.get("logprobs")
        if logs is None:
            raise self._unusable("no log-probabilities, without which there is no reflection")
        listed, names = _listed(logs), self._names or {}
        most = max((len(top) for _, _, top in listed), default=_LARGEST_GROUP)
        if most < _LARGEST_GROUP:
            few = f"{most} log-probabilities for each token, fewer than a group of tokens has"
            raise self._unusable(f"{few}. Allow more (vLLM: --max-logprobs 20)")
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
        return Row(positions, text.partition(ender)[0], information["finish_reason"] == "length")

    def _asked_names(self) -> dict[int, str]:
        """Ask the server for the number of each reflection token, and of the one that ends texts.

        vLLM and llama.cpp's server have the path ``/tokenize`` beside ``/v1``, each with its own
        name for the text; only the latter says at ``/props`` which token ends a text.
        """
        place = urlsplit(self._base_url)
        root = urlunsplit(place._replace(path=place.path.rstrip("/").removesuffix("/v1")))
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        options = {"model": self._model, "add_special_tokens": False, "parse_special": True}
        names: dict[int, str] = {}
        try:
            with httpx.Client(timeout=self._timeout, headers=headers) as client:
                properties = client.get(f"{root}/props", params={"model": self._model})
                end = properties.json()["eos_token"] if properties.is_success else END
                for text in (*TOKENS, end):
                    asked = {**options, "prompt": text, "content": text}
                    reply = client.post(f"{root}/tokenize", json=asked).raise_for_status()
                    numbers = reply.json()["tokens"]
                    if len(numbers) == 1 and isinstance(numbers[0], int):
                        names[numbers[0]] = END if text == end else text
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise self._error(error) from None
        missing = [token for token in TOKENS if token not in names.values()]
        if missing and self._tokens_required:
            raise tokens_missing(self._model, missing)
        return names

    @cached_property
    def _openai(self) -> "OpenAI":
        from langchain_openai import OpenAI
        from pydantic import SecretStr

        return OpenAI(
            model=self._model, base_url=self._base_url,
            api_key=SecretStr(self._key or "not-needed"), temperature=0, logprobs=self._top,
            batch_size=_ALL, cache=False, timeout=self._timeout, max_retries=self._retries,
            tags=[TAG_NOSTREAM],
        )  # fmt: skip

    def _unusable(self, what: str) -> ModelError:
        return ModelError(self._model, "failed", f"the reply of {self._host} has {what}")

    def _error(self, error: Exception) -> ModelError:
        """Return the error for a failed request, without the key in it."""
        status = getattr(getattr(error, "response", None), "status_code", None)
        problem, advice = _ADVICE.get(status, _OTHERWISE)
        words = redact(f"{type(error).__name__}: {said(reason_of(error))}")
        words = words.replace(self._key, "[secret]") if self._key else words
        detail = f"{self._host} {advice} ({shortened(words, _LONGEST)})"
        return ModelError(self._model, problem, detail)


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

"""Completions with log-probabilities from an OpenAI-compatible server, through LangChain."""

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from langgraph.constants import TAG_NOSTREAM

from crag.errors import ModelError
from crag.reflection.backends.completions_errors import faults, model_error
from crag.reflection.backends.completions_wire import Completion, read_completion
from crag.reflection.spending import spend
from crag.state import Usage

if TYPE_CHECKING:
    from langchain_core.outputs import LLMResult
    from langchain_openai import OpenAI

TOP = 20
"""Log-probabilities asked for at each position: what vLLM allows unless told otherwise."""
TIMEOUT = 60.0
"""Seconds for one request."""
RETRIES = 2
"""Repetitions after a rate limit, a server error or a timeout, with backoff (the client's own)."""
ECHO: Mapping[str, Any] = {"echo": True}
"""Ask for the prompt's tokens as well; such a request is not counted as spent."""
_SPECIAL = {
    "skip_special_tokens": False,
    "spaces_between_special_tokens": False,
    "return_tokens_as_token_ids": True,
    "include_stop_str_in_output": True,
}
_ALL = 1_000_000
"""Prompts in one request."""


class CompletionsClient:
    """Ask one model of the server at `base_url`; `api_key` goes before OPENAI_API_KEY."""

    def __init__(  # noqa: PLR0913 - the options of the back end
        self,
        model: str,
        base_url: str,
        api_key: str | None,
        *,
        top: int,
        timeout: float,
        retries: int,
    ) -> None:
        self._model, self._base_url = model, base_url
        self._key = api_key or os.environ.get("OPENAI_API_KEY", "")
        self._top, self._timeout, self._retries = top, timeout, retries

    @property
    def host(self) -> str:
        """The server's name, without what a URL may hold beside it."""
        return urlsplit(self._base_url).hostname or ""

    def ask(
        self, prompts: Sequence[str], most: int, further: Mapping[str, Any]
    ) -> list[Completion]:
        """Return one completion for each prompt, by one request of at most `most` tokens each.

        `further` are options beyond OpenAI's; `ECHO` asks for the prompts as well.

        Raises:
            ModelError: the request failed, or the reply has no log-probabilities.
        """
        try:
            result = self._openai.generate(list(prompts), **_request(most, further))
        except faults() as error:
            raise self._error(error) from None  # The cause may spell out the key.
        return self._read(result, prompts, further)

    async def aask(
        self, prompts: Sequence[str], most: int, further: Mapping[str, Any]
    ) -> list[Completion]:
        """Do as `ask` without blocking the event loop."""
        try:
            result = await self._openai.agenerate(list(prompts), **_request(most, further))
        except faults() as error:
            raise self._error(error) from None
        return self._read(result, prompts, further)

    def _read(
        self, result: "LLMResult", prompts: Sequence[str], further: Mapping[str, Any]
    ) -> list[Completion]:
        if further is not ECHO:
            spend(_usage(result))
        found = [one for several in result.generations for one in several]
        if len(found) != len(prompts):
            problem = f"the reply has {len(found)} completions for {len(prompts)} prompts"
            raise ModelError(self._model, "failed", problem)
        return [read_completion(self._model, one.text, one.generation_info) for one in found]

    def _error(self, error: Exception) -> ModelError:
        return model_error(error, self._model, self.host, self._key)

    @cached_property
    def _openai(self) -> "OpenAI":
        from langchain_openai import OpenAI
        from pydantic import SecretStr

        return OpenAI(
            model=self._model,
            base_url=self._base_url,
            api_key=SecretStr(self._key or "not-needed"),
            temperature=0,
            logprobs=self._top,
            batch_size=_ALL,
            cache=False,
            timeout=self._timeout,
            max_retries=self._retries,
            tags=[TAG_NOSTREAM],
        )


def _request(most: int, further: Mapping[str, Any]) -> dict[str, Any]:
    return {"max_tokens": most, "extra_body": {**_SPECIAL, **further}}


def _usage(result: "LLMResult") -> Usage:
    counted = (result.llm_output or {}).get("token_usage") or {}
    usage = Usage(llm_calls=1)
    if counted:
        usage["input_tokens"] = int(counted.get("prompt_tokens") or 0)
        usage["output_tokens"] = int(counted.get("completion_tokens") or 0)
    return usage

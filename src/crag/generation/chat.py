"""A chat model from its name: OpenAI, or any server that speaks its protocol."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages.ai import subtract_usage

from crag.answering.model_calls import words_of
from crag.errors import ModelError
from crag.extras import of_provider
from crag.runtime.calls import within

DEFAULT_MODEL = "gpt-4o-mini"
TIMEOUT = 60.0
"""Seconds without a byte of the reply after which a call has failed."""
_WHOLE_CALL = 5
"""How many times as long a whole call may take, repetitions included."""
RETRIES = 2
"""Repetitions after a rate limit, a server error or a timeout, with backoff (the client's own)."""


def load_chat_model(
    name: str = DEFAULT_MODEL,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = TIMEOUT,
    retries: int = RETRIES,
) -> BaseChatModel:
    """Return the chat model `name`.

    A plain name is served by OpenAI, or by the OpenAI-compatible server at `base_url` (vLLM,
    Ollama, llama.cpp; these need no key). ``provider:name`` is any provider that LangChain's
    `init_chat_model` knows. Without `api_key` it is taken from OPENAI_API_KEY.

    Nothing is sent that was not asked for: some models refuse a temperature, a stop sequence or
    another option with every call.

    Raises:
        ModelError: the name is empty, or a key is needed and OPENAI_API_KEY is not set.
        MissingPackageError: ``provider:name`` needs a package that is missing.
    """
    if not name.strip():
        raise ModelError("''", "unknown", "give it a name, such as gpt-4o-mini")
    name = name.removeprefix("openai:")
    if ":" in name and base_url is None:
        return _of_provider(name)
    key = api_key or os.environ.get("OPENAI_API_KEY", "")
    if not key and base_url is None:
        message = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
        raise ModelError(name, "key", message)
    import httpx
    from langchain_openai import ChatOpenAI
    from langchain_openai.chat_models.base import BaseChatOpenAI
    from pydantic import SecretStr

    # A connection that was opened in another event loop, such as that of an earlier `asyncio.run`,
    # can no longer be used, so none is kept.
    limits = httpx.Limits(max_keepalive_connections=0)
    client = httpx.AsyncClient(timeout=timeout, follow_redirects=True, limits=limits)
    # Other servers know `max_tokens` and not the name that OpenAI gave it since.
    bounded = _bounded(BaseChatOpenAI if base_url else ChatOpenAI, _WHOLE_CALL * timeout)
    model: BaseChatModel = bounded(
        model=name, base_url=base_url, api_key=SecretStr(key or "not-needed"), timeout=timeout,
        max_retries=retries, http_async_client=client, stream_usage=True,
    )  # fmt: skip
    return model


def _bounded(base: Any, seconds: float) -> Any:
    """Return a class of chat models that give up a call, with its repetitions, after some seconds.

    The client's timeout bounds each wait for the next byte, so a server that writes forever, or
    only keeps the connection alive, is never too late for that. What LangChain leaves out of a
    reply is told: the words of one that is no reply, and of a refusal that is streamed. Token
    counts that a stream repeats are counted once.
    """

    class Bounded(base):  # type: ignore[misc]
        def invoke(self, *args: Any, **options: Any) -> Any:
            return within(seconds, super().invoke, *args, **options)

        async def ainvoke(self, *args: Any, **options: Any) -> Any:
            return await asyncio.wait_for(super().ainvoke(*args, **options), seconds)

        def _stream(self, *args: Any, **options: Any) -> Any:
            return map(_counting_once(), super()._stream(*args, **options))

        async def _astream(self, *args: Any, **options: Any) -> Any:
            once = _counting_once()
            async for chunk in super()._astream(*args, **options):
                yield once(chunk)

        def _convert_chunk_to_generation_chunk(self, chunk: Any, *args: Any) -> Any:
            choice: dict[str, Any] = next(iter(chunk.get("choices") or ()), {})
            choice["delta"] = choice.get("delta") or choice.get("message") or {}
            made = super()._convert_chunk_to_generation_chunk(chunk, *args)
            if made is not None and (refusal := choice["delta"].get("refusal")):
                made.message.additional_kwargs["refusal"] = refusal
            return made

        def _create_chat_result(self, response: Any, *args: Any) -> Any:
            try:
                return super()._create_chat_result(response, *args)
            except TypeError as error:  # It holds no reply, but may say why.
                body = words_of(response.model_dump_json(exclude_none=True))
                raise ModelError(self.model_name, "failed", body) from error

    Bounded.__name__ = base.__name__
    return Bounded


def _counting_once() -> Callable[[Any], Any]:
    """Return what leaves of the token counts in the chunks of a stream what each adds to them."""
    seen: Any = None

    def once(chunk: Any) -> Any:
        nonlocal seen
        if usage := chunk.message.usage_metadata:
            chunk.message.usage_metadata, seen = subtract_usage(usage, seen), usage
        return chunk

    return once


def _of_provider(name: str) -> BaseChatModel:
    try:
        model: BaseChatModel = of_provider("langchain.chat_models:init_chat_model", name, "model")
    except ValueError as error:
        raise ModelError(name, "unknown", str(error)) from error
    return model

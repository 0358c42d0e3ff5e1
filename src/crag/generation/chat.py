"""A chat model from its name: OpenAI, or any server that speaks its protocol."""

import os
from typing import Any

from langchain_core.language_models import BaseChatModel

from crag.errors import MissingPackageError, ModelError
from crag.extras import provider_package

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
    from langchain_openai import ChatOpenAI
    from langchain_openai.chat_models.base import BaseChatOpenAI
    from pydantic import SecretStr

    from crag.generation.deadlines import clients

    client, async_client = clients(timeout, _WHOLE_CALL * timeout)
    options: dict[str, Any] = {
        "model": name,
        "base_url": base_url,
        "api_key": SecretStr(key or "not-needed"),
        "timeout": timeout,
        "max_retries": retries,
        "http_client": client,
        "http_async_client": async_client,
    }
    if base_url is None:
        return ChatOpenAI(**options)
    # Other servers know `max_tokens` and not the name that OpenAI gave it since.
    return BaseChatOpenAI(**options, stream_usage=True)


def _of_provider(name: str) -> BaseChatModel:
    try:
        from langchain.chat_models import init_chat_model  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPackageError("langchain", f"the model {name!r}") from error
    try:
        model: BaseChatModel = init_chat_model(name)
    except ImportError as error:
        raise MissingPackageError(provider_package(error), f"the model {name!r}") from error
    except ValueError as error:
        raise ModelError(name, "unknown", str(error)) from error
    return model

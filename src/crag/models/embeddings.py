"""Embedding models by name: on this machine, or any that LangChain reaches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.embeddings import Embeddings

from crag.errors import EncoderError, MissingPackageError
from crag.extras import provider_package
from crag.models.encoder import SentenceEncoder

TIMEOUT = 60.0
"""Seconds for one call of a server."""
RETRIES = 2

_T = TypeVar("_T")
_V = TypeVar("_V")


def load_embeddings(
    name: str, *, base_url: str | None = None, api_key: str | None = None
) -> Embeddings:
    """Return the embedding model `name`; one of this machine loads on first use.

    A folder, or an id on the Hugging Face hub, is a sentence-transformers model. ``openai:name`` is
    a model of OpenAI, or of the OpenAI-compatible server at `base_url` (vLLM, Ollama, llama.cpp;
    these need no key). ``provider:name`` is any that LangChain's `init_embeddings` knows.

    Raises:
        EncoderError: a key is needed and there is none, or no provider has that name.
        MissingPackageError: the model needs a package that is not installed.
    """
    provider, colon, model = name.partition(":")
    if not colon or Path(name).is_dir():
        return SentenceEncoder(name)
    if provider != "openai":
        return ServedEmbeddings(name, _of_provider(name))
    if not api_key and base_url is None:
        message = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
        raise EncoderError(name, message)
    from langchain_openai import OpenAIEmbeddings
    from pydantic import SecretStr

    options: dict[str, Any] = {  # Type checkers disagree on the names of these parameters.
        "base_url": base_url,
        "api_key": SecretStr(api_key or "not-needed"),
        "timeout": TIMEOUT,
        "max_retries": RETRIES,
        "check_embedding_ctx_length": False,  # Sends texts; other servers take no token numbers.
    }
    return ServedEmbeddings(name, OpenAIEmbeddings(model=model, **options))


class ServedEmbeddings(Embeddings):
    """An embedding model under the name that an index records; its failures are named.

    Raises:
        EncoderError: when embedding, if the server cannot be reached or refuses.
    """

    def __init__(self, name: str, embeddings: Embeddings) -> None:
        self.name = name
        self._embeddings = embeddings

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages."""
        return self._embedded(self._embeddings.embed_documents, texts) if texts else []

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self._embedded(self._embeddings.embed_query, text)

    def _embedded(self, embed: Callable[[_T], list[_V]], texts: _T) -> list[_V]:
        from httpx import HTTPError
        from openai import OpenAIError

        try:
            return embed(texts)
        except (OpenAIError, HTTPError, OSError, ValueError) as error:
            raise EncoderError(self.name, f"its server failed: {error}") from error


def _of_provider(name: str) -> Embeddings:
    try:
        from langchain.embeddings import init_embeddings  # pyright: ignore[reportMissingImports]

        return init_embeddings(name)
    except ImportError as error:
        package = provider_package(error)
        raise MissingPackageError(package, f"the embedding model {name!r}") from error
    except ValueError as error:
        raise EncoderError(name, str(error)) from error

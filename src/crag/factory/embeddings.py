"""Embedding models by name: the packaged one, or any that LangChain reaches.

With the limits of reading a file, this is all that `crag index` needs of the factory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from crag.errors import ModelError
from crag.extras import is_attribute, of_provider, part_named
from crag.models.encoder import DEFAULT_MODEL, packaged_encoder
from crag.plain import first_line
from crag.runtime.environment import Environment

if TYPE_CHECKING:
    from crag.documents.isolated import Limits

SECONDS = 60.0
"""For one call of a server."""


def choose_encoder(environment: Environment) -> Embeddings:
    """Return the embedding model that `CRAG_EMBEDDING_MODEL` names; weights load on first use.

    ``openai:name`` is a model of OpenAI, or of the server at OPENAI_BASE_URL (vLLM, Ollama,
    llama.cpp; these need no key). ``provider:name`` is any that LangChain's `init_embeddings`
    knows, ``module:attribute`` one of the user's own.

    Raises:
        CragError: the named model lacks a key or a package, or no model has that name.
    """
    name, base_url = environment.embedding_model or DEFAULT_MODEL, environment.openai_base_url
    if name == DEFAULT_MODEL:
        return packaged_encoder()
    if not name.startswith("openai:"):
        return _of_provider(name)
    if not environment.key and base_url is None:
        message = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
        raise ModelError(name, message)
    from langchain_openai import OpenAIEmbeddings
    from pydantic import SecretStr

    options: dict[str, Any] = {  # Type checkers disagree on the names of these parameters.
        "base_url": base_url, "api_key": SecretStr(environment.key or "not-needed"),
        "timeout": SECONDS,
        "check_embedding_ctx_length": False,  # Sends texts; other servers take no token numbers.
    }  # fmt: skip
    model = OpenAIEmbeddings(model=name.removeprefix("openai:"), **options)
    return ServedEmbeddings(name, model)


def choose_limits(environment: Environment) -> "Limits":
    """Return what reading one file may take."""
    from crag.documents.isolated import Limits  # With the loaders, which no question needs.

    return Limits(environment.read_seconds, environment.read_megabytes)


class ServedEmbeddings(Embeddings):
    """An embedding model under the name that an index records; its failures are named.

    Raises:
        ModelError: when embedding, if the server cannot be reached or refuses.
    """

    def __init__(self, name: str, embeddings: Embeddings) -> None:
        self.name = name
        self._embeddings = embeddings

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages."""
        with self._named_failures():
            return self._embeddings.embed_documents(texts) if texts else []

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        with self._named_failures():
            return self._embeddings.embed_query(text)

    @contextmanager
    def _named_failures(self) -> Iterator[None]:
        from httpx import HTTPError
        from openai import OpenAIError

        try:
            yield
        except (OpenAIError, HTTPError, OSError, ValueError) as error:
            raise ModelError(self.name, f"its server failed: {error}") from error


def _of_provider(name: str) -> Embeddings:
    try:
        made = of_provider("langchain.embeddings:init_embeddings", name, "embedding model")
    except ValueError as error:
        if is_attribute(name) and "not supported" in str(error):
            return part_named(name, "CRAG_EMBEDDING_MODEL", Embeddings)  # type: ignore[type-abstract]
        allowed = f"allowed are provider:name and module:attribute ({first_line(error)})"
        raise ModelError(name, allowed) from error
    return ServedEmbeddings(name, made)

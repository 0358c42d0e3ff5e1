"""Embedding models by name: on this machine, or any that LangChain reaches.

With the limits of reading a file, this is all that `crag index` needs of the factory.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from crag.errors import EncoderError, MissingPackageError
from crag.extras import provider_package, require
from crag.models.encoder import DEFAULT_MODEL, SentenceEncoder, packaged_encoder
from crag.models.model_card import CARD
from crag.plain import first_line
from crag.runtime.environment import Environment
from crag.torch_models import quietly

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from crag.documents.isolated import Limits

SECONDS, RETRIES = 60.0, 2
"""For one call of a server."""


def choose_encoder(environment: Environment) -> Embeddings:
    """Return the embedding model; weights load on first use.

    Raises:
        CragError: the named model lacks a key or a package.
    """
    name = environment.embedding_model or DEFAULT_MODEL
    return load_embeddings(name, base_url=environment.openai_base_url, api_key=environment.key)


def choose_limits(environment: Environment) -> "Limits":
    """Return what reading one file may take."""
    from crag.documents.isolated import Limits  # With the loaders, which no question needs.

    return Limits(environment.read_seconds, environment.read_megabytes)


def load_embeddings(
    name: str, *, base_url: str | None = None, api_key: str | None = None
) -> Embeddings:
    """Return the embedding model `name`; one of this machine loads on first use.

    A folder is what `crag train encoder` wrote, or a sentence-transformers model, as is an id on
    the Hugging Face hub. ``openai:name`` is a model of OpenAI, or of the OpenAI-compatible server
    at `base_url` (vLLM, Ollama, llama.cpp; these need no key). ``provider:name`` is any that
    LangChain's `init_embeddings` knows.

    Raises:
        EncoderError: a key is needed and there is none, or no provider has that name.
        MissingPackageError: the model needs a package that is not installed.
    """
    provider, colon, model = name.partition(":")
    if name == DEFAULT_MODEL:
        return packaged_encoder()
    if (Path(name) / CARD).is_file():
        return SentenceEncoder(Path(name))
    if not colon or Path(name).is_dir():
        return TorchEncoder(name)
    if provider != "openai":
        return ServedEmbeddings(name, _of_provider(name))
    if not api_key and base_url is None:
        message = "set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
        raise EncoderError(name, message)
    from langchain_openai import OpenAIEmbeddings
    from pydantic import SecretStr

    options: dict[str, Any] = {  # Type checkers disagree on the names of these parameters.
        "base_url": base_url, "api_key": SecretStr(api_key or "not-needed"), "timeout": SECONDS,
        "max_retries": RETRIES,
        "check_embedding_ctx_length": False,  # Sends texts; other servers take no token numbers.
    }  # fmt: skip
    return ServedEmbeddings(name, OpenAIEmbeddings(model=model, **options))


class TorchEncoder(Embeddings):
    """Embed with any sentence-transformers model: a folder, or an id on the Hugging Face hub.

    Weights are read from safetensors only, on first use. Vectors have length 1; thread-safe.

    Raises:
        EncoderError: on first use, if the model cannot be loaded.
        MissingPackageError: the extra `torch` is not installed.
    """

    def __init__(self, model: str) -> None:
        self.name = str(Path(model).resolve()) if Path(model).is_dir() else model
        """The name that an index built with this encoder records."""
        self._lock = threading.Lock()  # Fast tokenizers of transformers are not thread-safe.
        self._model: SentenceTransformer | None = None
        require("torch", f"the sentence encoder {self.name}", "torch", "sentence_transformers")

    def verify(self) -> None:
        """Check a folder without loading the model.

        Raises:
            EncoderError: it holds no weights.
        """
        folder = Path(self.name)
        if folder.is_dir() and not any(folder.rglob("*.safetensors")):
            raise EncoderError(self.name, "there are no weights (*.safetensors) in this folder")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages."""
        return self._encoded("encode_document", texts) if texts else []

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self._encoded("encode_query", [text])[0]

    def _encoded(self, method: str, texts: Sequence[str]) -> list[list[float]]:
        with self._lock:
            model = self._model = self._model or self._load()
            encode: Any = getattr(model, method)
            vectors: Any = encode(list(texts), show_progress_bar=False, normalize_embeddings=True)
        return vectors.tolist()  # type: ignore[no-any-return]

    def _load(self) -> "SentenceTransformer":
        from sentence_transformers import SentenceTransformer

        try:
            with quietly():
                return SentenceTransformer(self.name, model_kwargs={"use_safetensors": True})
        except (OSError, ValueError) as error:
            problem = (
                "it is no folder with a model in safetensors, and not to be had from the Hugging "
                f"Face hub. Check name and network, or use the default, {DEFAULT_MODEL}"
            )
            raise EncoderError(self.name, f"{problem} ({first_line(error)})") from error


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

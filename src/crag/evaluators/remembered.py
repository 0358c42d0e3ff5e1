"""Vectors of texts that were embedded before, up to a bound."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class RememberedVectors:
    """Embed each text once, and keep the vectors of the last `most` texts; thread-safe.

    The sentences of a document are the sentences of its strips and of a quotation, so a run would
    otherwise embed them three times. 8,192 vectors of 384 numbers take 12 MiB.
    """

    def __init__(self, embeddings: Embeddings, most: int = 8192) -> None:
        self._embeddings = embeddings
        self._most = most
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of `texts`, each of length 1, in order."""
        with self._lock:
            vectors = {text: self._known[text] for text in texts if text in self._known}
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new:
            vectors |= zip(new, _unit(self._embeddings.embed_documents(new)), strict=True)
        with self._lock:
            for text in texts:
                self._known[text] = vectors[text]
                self._known.move_to_end(text)
            while len(self._known) > self._most:
                self._known.popitem(last=False)
        return [vectors[text] for text in texts]


def _unit(vectors: Sequence[Sequence[float]]) -> Vector:
    matrix = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit: Vector = np.divide(matrix, lengths, out=matrix, where=lengths > 0)
    return unit

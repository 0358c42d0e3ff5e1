"""The first embedded evaluator: cosine similarity of a sentence encoder, calibrated."""

import json
import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Self

from langchain_core.embeddings import Embeddings

from crag.state import Thresholds

EMPTY = -1.0


class CosineEvaluator:
    """Score by the calibrated cosine of question and text: ``2σ(slope · cosine + intercept) - 1``.

    Scores lie in [-1, 1] and read as probabilities of relevance: 0 is even odds, -0.5 (the strip
    threshold of CRAG, Sec. 4.4) a probability of a quarter. Slope, intercept and thresholds are
    those fitted for the encoder; another encoder needs its own.
    """

    def __init__(
        self, embeddings: Embeddings, *, slope: float, intercept: float, thresholds: Thresholds
    ) -> None:
        self._embeddings = embeddings
        self._slope, self._intercept = slope, intercept
        self._thresholds = thresholds

    @classmethod
    def fitted(cls, embeddings: Embeddings) -> Self:
        """Return the evaluator with the calibration shipped for all-MiniLM-L6-v2."""
        card = json.loads(files("crag.evaluators").joinpath("cosine.json").read_text("utf-8"))
        return cls(
            embeddings,
            slope=card["slope"],
            intercept=card["intercept"],
            thresholds=Thresholds(upper=card["upper"], lower=card["lower"]),
        )

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds fitted together with slope and intercept."""
        return self._thresholds

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score in [-1, 1] for each text, in order; an empty text scores -1.0.

        Question and texts are embedded in one batch.
        """
        asked = [index for index, text in enumerate(texts) if text.strip()]
        scores = [EMPTY] * len(texts)
        if not asked:
            return scores
        for index, cosine in zip(asked, self._cosines(question, texts, asked), strict=True):
            scores[index] = math.tanh((self._slope * cosine + self._intercept) / 2)
        return scores

    def _cosines(self, question: str, texts: Sequence[str], asked: Sequence[int]) -> list[float]:
        import numpy as np

        vectors = np.asarray(
            self._embeddings.embed_documents([question, *(texts[i] for i in asked)])
        )
        lengths = np.linalg.norm(vectors, axis=1)
        vectors /= np.where(lengths > 0, lengths, 1.0)[:, None]
        return [float(cosine) for cosine in vectors[1:] @ vectors[0]]

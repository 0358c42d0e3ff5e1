"""The first embedded evaluator: the cosine of the best passage within a text, calibrated."""

import json
import math
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Self

import numpy as np
from langchain_core.embeddings import Embeddings

from crag.correction.scoring import LOWEST, split_title, with_title
from crag.evaluators.remembered import RememberedVectors
from crag.parts import Passage
from crag.state import Thresholds
from crag.text.language import languages_of
from crag.text.sentences import sentences_of

MOST_SENTENCES = 64
"""Most sentences of one text that are compared one by one; the rest counts in the whole text."""


class CosineEvaluator:
    """Score by the calibrated best cosine of question and text: ``2σ(slope · c + intercept) - 1``.

    c is the largest cosine of the question with the whole text, with one of its sentences, and
    with one of its sentences after the text's title (``title // sentence``): a short question
    resembles the sentence that answers it more than the passage around it. Scores lie in [-1, 1]
    and read as probabilities of relevance: 0 is even odds, -0.5 (the strip threshold of CRAG,
    Sec. 4.4) a probability of a quarter. Slope, intercept and thresholds are those fitted for the
    encoder; another encoder needs its own.
    """

    def __init__(
        self, embeddings: Embeddings, *, slope: float, intercept: float, thresholds: Thresholds
    ) -> None:
        self.languages = languages_of(embeddings)
        """The languages that the encoder reads."""
        self._vectors = RememberedVectors(embeddings)
        self._slope, self._intercept = slope, intercept
        self.thresholds = thresholds
        """The thresholds fitted together with slope and intercept."""

    @classmethod
    def fitted(cls, embeddings: Embeddings) -> Self:
        """Return the evaluator with the calibration shipped for the packaged encoder."""
        card = json.loads(files("crag.evaluators").joinpath("cosine.json").read_text("utf-8"))
        return cls(
            embeddings,
            slope=card["slope"],
            intercept=card["intercept"],
            thresholds=Thresholds(upper=card["upper"], lower=card["lower"]),
        )

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score in [-1, 1] for each text; ``title // text`` is read by `split_title`."""
        return self.score_passages(question, [split_title(text) for text in texts])

    def score_passages(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return one score in [-1, 1] for each passage, in order; an empty text scores -1.0."""
        return [
            LOWEST if cosine is None else math.tanh((self._slope * cosine + self._intercept) / 2)
            for cosine in self.cosines(question, passages)
        ]

    def cosines(self, question: str, passages: Sequence[Passage]) -> list[float | None]:
        """Return the best cosine of each passage before calibration; None for an empty one.

        What was not embedded before is embedded in one batch.
        """
        views = [list(_views(passage)) for passage in passages]
        flat = [view for group in views for view in group]
        question_vector, *vectors = self._vectors.of([question, *flat])
        cosines = iter(np.asarray(vectors) @ question_vector if vectors else ())
        return [max((float(next(cosines)) for _ in group), default=None) for group in views]


def _views(passage: Passage) -> Iterator[str]:
    """Yield the texts of a passage that are compared with the question, without duplicates."""
    if not passage.text.strip():
        return
    whole = with_title(passage.title, passage.text)
    sentences = sentences_of(passage.text)[:MOST_SENTENCES]
    titled = (with_title(passage.title, sentence) for sentence in sentences)
    yield from dict.fromkeys([whole, *sentences, *titled])

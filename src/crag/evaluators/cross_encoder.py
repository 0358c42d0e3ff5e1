"""A cross-encoder of the user's: any model with one output for question and text together."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crag.correction.scoring import LOWEST, split_title
from crag.models.model_card import ModelCard
from crag.parts import Passage
from crag.state import Thresholds

UNCALIBRATED = Thresholds(upper=0.5, lower=-0.5)
"""Thresholds for a card without any: probabilities of three quarters and of one quarter."""


class PairModel(Protocol):
    """A model that reads a question and a passage together."""

    def logits(self, pairs: Sequence[tuple[str, Passage]], batch_size: int) -> NDArray[np.float64]:
        """Return one number for each pair, in order; thread-safe."""
        ...


class CrossEncoderEvaluator:
    """Score by ``2σ(x) - 1`` of the model's output x, so that scores lie in [-1, 1].

    A score reads as a probability p of relevance by p = (score + 1) / 2: the strip threshold of
    -0.5 (CRAG, Sec. 4.4) is a probability of a quarter. An empty text scores -1.0 without the
    model. Texts are scored in batches of like length; a score does not depend on its batch.
    """

    def __init__(
        self,
        model: PairModel,
        *,
        card: ModelCard | None = None,
        thresholds: Thresholds | None = None,
        batch_size: int = 32,
    ) -> None:
        self.card = card
        calibration = card.calibration if card else None
        self.thresholds = thresholds or (calibration.thresholds if calibration else UNCALIBRATED)
        """The thresholds on the card; 0.5 and -0.5 as long as it has none."""
        self._model = model
        self._batch_size = batch_size

    def verify(self) -> None:
        """Load the model now rather than on first use.

        Raises:
            CragError: it cannot be loaded.
        """
        self._model.logits([("Does it load?", Passage("", "It does."))], 1)

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return one score in [-1, 1] for each text; ``title // text`` is read by `split_title`."""
        return self.score_passages(question, [split_title(text) for text in texts])

    def score_passages(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return one score in [-1, 1] for each passage."""
        places = [index for index, passage in enumerate(passages) if passage.text.strip()]
        scores = [LOWEST] * len(passages)
        if places:
            pairs = [(question, passages[index]) for index in places]
            logits = self._model.logits(pairs, self._batch_size)
            for index, score in zip(places, np.tanh(logits / 2).tolist(), strict=True):
                scores[index] = score
        return scores

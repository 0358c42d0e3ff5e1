"""The embedded evaluator: a small encoder that reads question and text together."""

import threading
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from crag.correction.scoring import LOWEST, split_title, with_title
from crag.errors import EvaluatorError
from crag.models.lexical import Blend, bare_title
from crag.models.minilm import WEIGHTS_SHA256, MiniLM, official_weights
from crag.models.model_card import EvaluatorCard, read_card
from crag.models.reading_model import SHORTEST_INPUT
from crag.models.weights import DELTA, Weights, layer, pooled, read_tensors, restored
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
        card: EvaluatorCard | None = None,
        thresholds: Thresholds | None = None,
        batch_size: int = 32,
    ) -> None:
        self.card = card
        self.languages = frozenset({"en"} if isinstance(model, ChangedMiniLM) else ())
        """The languages that it reads, by ISO 639-1 code; empty if unknown."""
        calibration = card.calibration if card else None
        self.thresholds = thresholds or (calibration.thresholds if calibration else UNCALIBRATED)
        """The thresholds on the card; 0.5 and -0.5 as long as it has none."""
        self._model = model
        self._batch_size = batch_size

    @classmethod
    def packaged(cls) -> Self:
        """Return the evaluator that ships with this package; its weights load on first use."""
        with as_file(files("crag.evaluators").joinpath("cross_encoder")) as folder:
            return cls.changed(folder)

    @classmethod
    def changed(cls, folder: Path) -> Self:
        """Return an evaluator stored as its difference from the packaged encoder.

        Raises:
            EvaluatorError: the folder has no card, or it belongs to another base.
        """
        card = card_of_change(folder)
        return cls(ChangedMiniLM(folder, card.max_length), card=card)

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


def card_of_change(folder: Path, *, reads: bool = False) -> EvaluatorCard:
    """Return the card of an evaluator that is stored as its difference from the packaged encoder.

    Raises:
        EvaluatorError: there is none, it is that of another base, or, if it `reads`, of no reader.
    """
    card = read_card(folder)
    if card is None:
        message = f"{folder} has no card.json, so nothing says which base its weights change"
        raise EvaluatorError(message)
    if reads and (card.kind != "reader" or card.max_length < SHORTEST_INPUT):
        message = (
            f"{folder} holds a {card.kind} for {card.max_length} tokens; a reader is a "
            f"'reader' for at least {SHORTEST_INPUT}"
        )
        raise EvaluatorError(message)
    if card.base_sha256 != WEIGHTS_SHA256:
        command = "" if reads else ": crag train"
        message = (
            f"{folder} changes a base with SHA-256 {card.base_sha256}; the packaged encoder has "
            f"{WEIGHTS_SHA256}. Train it again from the packaged one{command}"
        )
        raise EvaluatorError(message)
    return card


class _LoadedModel(NamedTuple):
    model: MiniLM
    weights: Weights
    blend: Blend | None


class ChangedMiniLM:
    """The packaged encoder with a difference added: first position, tanh layer, one output.

    Where the folder holds a blend, its output is that of the logistic regression on the model's
    output and lexical features.
    """

    def __init__(self, folder: Path, max_length: int) -> None:
        self._folder = folder.resolve()
        self._max_length = max_length
        self._lock = threading.Lock()
        self._loaded: _LoadedModel | None = None

    def logits(self, pairs: Sequence[tuple[str, Passage]], batch_size: int) -> NDArray[np.float64]:
        """Return the output for each pair."""
        with self._lock:
            model, weights, blend = self._loaded = self._loaded or self._load()
        logits = np.empty(len(pairs))
        encodings = model.encode(
            [(question, with_title(passage.title, passage.text)) for question, passage in pairs]
        )
        for batch in model.hidden(encodings, batch_size):
            first = np.array([states[0] for states in batch.results])
            outputs = layer(weights, "classifier", pooled(weights, first))[:, 0].astype(np.float64)
            if blend is not None:
                encoded = [encodings[index] for index in batch.indices]
                titles = [bare_title(pairs[index][1].title) for index in batch.indices]
                outputs = blend.logits(outputs, blend.features(encoded, titles))
            logits[batch.indices] = outputs
        return logits

    def _load(self) -> _LoadedModel:
        weights = restored(official_weights(), read_tensors(self._folder / DELTA))
        model = MiniLM(weights, max_length=self._max_length, name="cross_encoder")
        return _LoadedModel(model, weights, Blend.of(self._folder))

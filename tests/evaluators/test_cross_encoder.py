"""The score of a cross-encoder, and its thresholds; `test_torch_pairs` loads some."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from crag.evaluators import CrossEncoderEvaluator
from crag.models.model_card import Calibration, DataFile, ModelCard
from crag.parts import Evaluator, Passage

CARD = ModelCard(kind="cross_encoder", base="base", max_length=32)


class FakePairs:
    """Gives the length of each text as its logit, and remembers the batch size."""

    def __init__(self) -> None:
        self.asked: list[list[tuple[str, Passage]]] = []

    def logits(self, pairs: Sequence[tuple[str, Passage]], batch_size: int) -> NDArray[np.float64]:
        assert batch_size == 7
        self.asked.append(list(pairs))
        return np.array([float(len(passage.text)) for _, passage in pairs])


def test_a_score_is_twice_the_probability_less_one() -> None:
    model = FakePairs()
    evaluator = CrossEncoderEvaluator(model, batch_size=7)
    assert isinstance(evaluator, Evaluator)
    scores = evaluator.score("q", ["ab", "", "a", " \n"])
    assert scores == pytest.approx([2 / (1 + np.exp(-2)) - 1, -1.0, 2 / (1 + np.exp(-1)) - 1, -1.0])
    assert model.asked == [[("q", Passage("", "ab")), ("q", Passage("", "a"))]]
    assert evaluator.score("q", ["", ""]) == [-1.0, -1.0]
    assert evaluator.score("q", []) == []
    assert len(model.asked) == 1


def test_thresholds_are_given_or_on_the_card_or_usual() -> None:
    data = [DataFile(name="d", sha256="0", pairs=1, positives=1)]
    found = Calibration(
        upper=0.4, lower=-0.7, aim="a", questions=1, data=data, quantiles=[0.0] * 21
    )
    card = CARD.model_copy(update={"calibration": found})
    usual = CrossEncoderEvaluator(FakePairs(), card=CARD)
    fitted = CrossEncoderEvaluator(FakePairs(), card=card)
    given = CrossEncoderEvaluator(FakePairs(), card=card, thresholds={"upper": 0.9, "lower": 0.1})
    assert usual.thresholds == {"upper": 0.5, "lower": -0.5}
    assert fitted.thresholds == {"upper": 0.4, "lower": -0.7}
    assert given.thresholds == {"upper": 0.9, "lower": 0.1}
    assert fitted.card == card

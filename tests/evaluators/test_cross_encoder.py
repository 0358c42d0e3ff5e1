"""Cross-encoders of the user's, stored whole."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from crag.correction.strips import with_title
from crag.errors import EvaluatorError
from crag.evaluators import CrossEncoderEvaluator, load_evaluator
from crag.models.model_card import Calibration, ModelCard
from crag.papers.evaluator.trainer import load_trainee
from crag.papers.files import write_card
from crag.parts import Evaluator
from tests.trained import outputs_of, small_recipe, some_pairs, tiny_bert

PAIRS = some_pairs(24)
QUESTION = "How old is the violin in Peru?"
TEXTS = [with_title(pair.title, pair.text) for pair in PAIRS]
CARD = ModelCard(kind="cross_encoder", base="tiny", max_length=48)
FITTED = Calibration(upper=0.4, lower=-0.7, aim="tests", questions=1, data=[])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a BERT with one output, as transformers stores it, and a card."""
    folder = tiny_bert(tmp_path_factory.mktemp("whole"), outputs=1)
    write_card(folder, CARD)
    return folder


@pytest.fixture(scope="module")
def evaluator(folder: Path) -> Evaluator:
    return load_evaluator(str(folder))


def plain(folder: Path, question: str, texts: list[str], length: int = 48) -> list[float]:
    asked = [PAIRS[0]._replace(question=question, title="", text=text) for text in texts]
    outputs = outputs_of(load_trainee(small_recipe(folder)), asked, length)
    return (2 / (1 + np.exp(-outputs)) - 1).tolist()


def test_scores_are_those_of_a_plain_forward_pass(folder: Path, evaluator: Evaluator) -> None:
    assert isinstance(evaluator, CrossEncoderEvaluator)
    scores = evaluator.score(QUESTION, TEXTS)
    assert len({round(score, 3) for score in scores}) > 5
    assert scores == pytest.approx(plain(folder, QUESTION, TEXTS), abs=1e-5)


def test_a_card_says_thresholds_and_length(folder: Path, tmp_path: Path) -> None:
    long = "violin " * 200
    uncalibrated = load_evaluator(str(folder))
    assert uncalibrated.thresholds == {"upper": 0.5, "lower": -0.5}
    expected = plain(folder, QUESTION, [long])
    assert uncalibrated.score(QUESTION, [long]) == pytest.approx(expected, abs=1e-5)
    copy = shutil.copytree(folder, tmp_path / "copy")
    write_card(copy, CARD.model_copy(update={"calibration": FITTED}))
    assert load_evaluator(str(copy)).thresholds == {"upper": 0.4, "lower": -0.7}
    (copy / "card.json").unlink()
    found = load_evaluator(str(copy)).score(QUESTION, [long])
    assert found == pytest.approx(plain(copy, QUESTION, [long], length=128), abs=1e-5)


def test_a_model_with_other_outputs_is_refused_before_it_loads(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match="it has 3 outputs; an evaluator has one"):
        load_evaluator(str(tiny_bert(tmp_path, outputs=3)))


def test_a_model_without_a_head_is_refused_on_first_use(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"it lacks \d weights"):
        load_evaluator(str(tiny_bert(tmp_path))).score("?", ["a text"])

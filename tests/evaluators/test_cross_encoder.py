"""The embedded evaluator: a difference from the packaged encoder, run without torch."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from crag.correction.scoring import with_title
from crag.errors import EvaluatorError
from crag.evaluators import CrossEncoderEvaluator, load_evaluator
from crag.models.lexical import FEATURES, LEXICAL, Blend, bare_title
from crag.models.minilm import MODEL, WEIGHTS_SHA256, packaged_model
from crag.models.model_card import Calibration, DataFile, EvaluatorCard, read_card
from crag.models.weights import DELTA, read_tensors
from crag.papers.training.artefacts import write_card
from crag.papers.training.models import Trainee
from crag.papers.training.recipe import Recipe
from crag.papers.training.saving import save
from crag.papers.training.trainer import train
from crag.parts import Evaluator, Passage
from crag.runtime.evaluator_calls import scores_of
from tests.trained import outputs_of, some_pairs

PAIRS = some_pairs(24)
TEXTS = [with_title(pair.title, pair.text) for pair in PAIRS]
PASSAGES = [Passage(pair.title, pair.text) for pair in PAIRS]
QUESTION = PAIRS[0].question
ASKED = [pair._replace(question=QUESTION) for pair in PAIRS]
CARD = EvaluatorCard(kind="cross_encoder", base=MODEL, base_sha256=WEIGHTS_SHA256, max_length=32)
RECIPE = Recipe(batch_size=12, max_length=32, learning_rate=1e-3, evaluations=0)


class FakePairs:
    """Gives the length of each text as its logit, and remembers the batch size."""

    def __init__(self) -> None:
        self.asked: list[list[tuple[str, Passage]]] = []

    def logits(self, pairs: Sequence[tuple[str, Passage]], batch_size: int) -> NDArray[np.float64]:
        assert batch_size == 7
        self.asked.append(list(pairs))
        return np.array([float(len(passage.text)) for _, passage in pairs])


class Made(NamedTuple):
    """A trained model in memory, and the folders it was saved in."""

    trainee: Trainee
    plain: Path
    blended: Path
    blend: Blend


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Train the packaged encoder for two steps."""
    output = tmp_path_factory.mktemp("made")
    trainee = train(RECIPE, PAIRS, [], output / "work", quiet=True).trainee
    draw = np.random.default_rng(0)
    stored = draw.gamma(1, 2, len(trainee.tokenizer)).astype(np.float16)
    blend = Blend(stored.astype(np.float32), draw.normal(0, 0.5, size=1 + len(FEATURES)), 0.3)
    for name, chosen in (("plain", None), ("blended", blend)):
        save(trainee, chosen, RECIPE, output / name, CARD)
    return Made(trainee, output / "plain", output / "blended", blend)


def score_of(logits: Any) -> Any:
    return pytest.approx((2 / (1 + np.exp(-np.asarray(logits))) - 1).tolist(), abs=1e-3)


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


def test_it_scores_as_the_model_that_was_trained(made: Made) -> None:
    scores = load_evaluator(str(made.plain)).score(QUESTION, TEXTS)
    assert scores == score_of(outputs_of(made.trainee, ASKED, 32))
    assert len({round(score, 3) for score in scores}) > 5


def test_a_blend_is_applied(made: Made) -> None:
    encoded = made.trainee.tokenizer(
        [QUESTION] * len(TEXTS), TEXTS, truncation="longest_first", max_length=32
    )
    features = made.blend.features(encoded.encodings, [bare_title(pair.title) for pair in PAIRS])
    expected = made.blend.logits(outputs_of(made.trainee, ASKED, 32), features)
    evaluator = load_evaluator(str(made.blended))
    assert evaluator.score(QUESTION, TEXTS) == score_of(expected)
    assert scores_of(evaluator, QUESTION, PASSAGES) == score_of(expected)


def test_strokes_in_an_untitled_text_are_no_title(made: Made) -> None:
    question, code = "What is violin?", "violin // a comment in code"
    evaluator = load_evaluator(str(made.blended))
    apart = scores_of(evaluator, question, [Passage("", code)])
    joined = evaluator.score(question, [code])
    assert joined == scores_of(evaluator, question, [Passage("violin", "a comment in code")])
    assert apart != pytest.approx(joined, abs=1e-3)
    encoded = made.trainee.tokenizer([question], [code])
    asked = [PAIRS[0]._replace(question=question, title="", text=code)]
    features = made.blend.features(encoded.encodings, [""])
    expected = made.blend.logits(outputs_of(made.trainee, asked, 32), features)
    assert apart == score_of(expected)


def test_the_artefact_is_small(made: Made) -> None:
    base = packaged_model() / "model.safetensors"
    assert (made.plain / DELTA).stat().st_size < base.stat().st_size / 4
    stored = read_tensors(made.plain / DELTA)
    assert not any("embeddings" in name for name in stored)
    assert sorted(path.name for path in made.plain.iterdir()) == ["card.json", DELTA]
    assert sorted(path.name for path in made.blended.iterdir()) == ["card.json", DELTA, LEXICAL]


def test_what_an_earlier_evaluator_left_is_removed(made: Made, tmp_path: Path) -> None:
    folder = shutil.copytree(made.blended, tmp_path / "again")
    save(made.trainee, None, RECIPE, folder, CARD)
    assert sorted(path.name for path in folder.iterdir()) == ["card.json", DELTA]
    elsewhere = Recipe(base="elsewhere")
    save(made.trainee, None, elsewhere, folder, CARD.model_copy(update={"base_sha256": None}))
    assert not (folder / DELTA).exists()
    assert (folder / "model.safetensors").is_file()
    scores = load_evaluator(str(folder)).score(QUESTION, TEXTS)
    assert scores == score_of(outputs_of(made.trainee, ASKED, 32))


def test_another_base_is_refused(made: Made, tmp_path: Path) -> None:
    folder = shutil.copytree(made.plain, tmp_path / "other")
    write_card(folder, CARD.model_copy(update={"base_sha256": "0" * 64}))
    with pytest.raises(EvaluatorError, match=rf"SHA-256 0{{64}}.*{WEIGHTS_SHA256}.*crag train"):
        load_evaluator(str(folder))


def test_a_folder_without_a_card_is_refused(made: Made, tmp_path: Path) -> None:
    folder = shutil.copytree(made.plain, tmp_path / "bare")
    assert read_card(folder) == CARD
    (folder / "card.json").unlink()
    with pytest.raises(EvaluatorError, match=r"bare has no card\.json"):
        load_evaluator(str(folder))


def test_a_missing_or_truncated_difference_is_refused(made: Made, tmp_path: Path) -> None:
    folder = shutil.copytree(made.blended, tmp_path / "cut")
    evaluator = CrossEncoderEvaluator.changed(folder)
    for name in (LEXICAL, DELTA):
        (folder / name).write_bytes((folder / name).read_bytes()[:-10])
        with pytest.raises(EvaluatorError, match=rf"{name} cannot be read.*copy the file again"):
            evaluator.score(QUESTION, ["a text"])
    (folder / DELTA).unlink()
    with pytest.raises(EvaluatorError, match="No such file"):
        evaluator.score(QUESTION, ["a text"])
    with pytest.raises(EvaluatorError, match="holds no evaluator"):
        load_evaluator(str(folder))


def test_a_relative_folder_stays_the_same(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made.plain.parent)
    evaluator = load_evaluator(made.plain.name)
    monkeypatch.chdir(tmp_path)
    assert -1 < evaluator.score(QUESTION, ["text"])[0] < 1

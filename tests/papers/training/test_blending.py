"""The blend of a model's output with what words alone tell."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest

from crag.correction.scoring import with_title
from crag.errors import TrainingError
from crag.models.lexical import FEATURES, Blend, bare_title
from crag.papers.training.blending import fit_blend
from crag.papers.training.metrics import auc
from crag.papers.training.models import Trainee, load_trainee
from crag.papers.training.pairs import Pair
from crag.papers.training.recipe import Recipe
from tests.trained import outputs_of, small_recipe, some_pairs, tiny_bert

PAIRS, KEPT = some_pairs(60), some_pairs(40, seed=1)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return small_recipe(tiny_bert(tmp_path_factory.mktemp("bert")))


@pytest.fixture(scope="module")
def trainee(recipe: Recipe) -> Trainee:
    return load_trainee(recipe)


def blended(trainee: Trainee, blend: Blend, pairs: list[Pair]) -> list[float]:
    texts = [with_title(pair.title, pair.text) for pair in pairs]
    encoded = trainee.tokenizer([pair.question for pair in pairs], texts, truncation=True)
    features = blend.features(encoded.encodings, [bare_title(pair.title) for pair in pairs])
    return blend.logits(outputs_of(trainee, pairs, 48), features).tolist()


def test_words_help_a_model_that_has_learned_nothing(recipe: Recipe, trainee: Trainee) -> None:
    blend = fit_blend(trainee, recipe, PAIRS, KEPT)
    assert blend.weights.shape == (1 + len(FEATURES),)
    assert blend.rarity.shape == (len(trainee.tokenizer),)
    new = some_pairs(40, seed=2)
    logits = blended(trainee, blend, new)
    assert auc([pair.positive for pair in new], logits) == 1.0
    probabilities = 1 / (1 + np.exp(-np.array(logits)))
    assert probabilities.mean() == pytest.approx(0.5, abs=0.1)


def test_graded_labels_count_in_shares(recipe: Recipe, trainee: Trainee) -> None:
    graded = [pair._replace(label=0.8 if pair.positive else 0.4) for pair in KEPT]
    logits = np.array(blended(trainee, fit_blend(trainee, recipe, PAIRS, graded), graded))
    probabilities = 1 / (1 + np.exp(-logits))
    relevant = np.array([pair.positive for pair in graded])
    assert probabilities[relevant].mean() == pytest.approx(0.8, abs=0.05)
    assert probabilities[~relevant].mean() == pytest.approx(0.4, abs=0.05)


def test_the_fit_is_the_same_again(recipe: Recipe, trainee: Trainee) -> None:
    one, other = (fit_blend(trainee, recipe, PAIRS, KEPT) for _ in range(2))
    assert np.array_equal(one.weights, other.weights)
    assert one.intercept == other.intercept


def test_one_class_is_refused(recipe: Recipe, trainee: Trainee) -> None:
    with pytest.raises(TrainingError, match="set aside for the blend"):
        fit_blend(trainee, recipe, PAIRS, [pair for pair in KEPT if pair.positive])


def test_a_tokenizer_without_offsets_is_refused(recipe: Recipe, trainee: Trainee) -> None:
    slow = trainee._replace(tokenizer=SimpleNamespace(is_fast=False))  # type: ignore[arg-type]
    with pytest.raises(TrainingError, match="has no fast form: set blend=0"):
        fit_blend(slow, recipe, PAIRS, KEPT)


def test_a_base_that_does_not_tell_question_from_text_is_blended_too(
    recipe: Recipe, trainee: Trainee
) -> None:
    single = copy.copy(trainee.tokenizer)
    single.model_input_names = ["input_ids", "attention_mask"]
    blend = fit_blend(trainee._replace(tokenizer=single), recipe, PAIRS, KEPT)
    told = fit_blend(trainee, recipe, PAIRS, KEPT)
    assert np.isfinite(blend.weights).all()
    assert blend.weights[0] != told.weights[0]  # The model's output is another one.

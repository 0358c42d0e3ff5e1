"""Training runs of seconds: what they learn, how they go on, and how they fail."""

import json
from pathlib import Path

import numpy as np
import pytest

from crag.correction.scoring import with_title
from crag.errors import TrainingError
from crag.evaluators import CrossEncoderEvaluator
from crag.models.model_card import ModelCard
from crag.papers.evaluator.metrics import quality
from crag.papers.evaluator.models import load_trainee
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.recipe import Recipe, recipe_from
from crag.papers.evaluator.saving import save
from crag.papers.evaluator.trainer import WORK, Trained, finish, train
from tests.trained import TINY_T5, outputs_of, small_recipe, some_pairs, tiny_bert

PAIRS = some_pairs(40)
STEPS = Recipe.model_validate(
    {
        "base": str(TINY_T5),
        "loss": "squared",
        "epochs": 12,
        "batch_size": 4,
        "dropout": 0.1,
        "max_length": 64,
        "learning_rate": 1e-3,
        "evaluations": 0,
        "save_steps": 20,
    }
)
"""120 steps, from six of which one can go on."""


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    """Return a run of `STEPS` that nothing interrupted, with its points to go on from."""
    output = tmp_path_factory.mktemp("whole")
    return train(STEPS, PAIRS, [], output, quiet=True), output


def losses(trained: Trained) -> list[float]:
    return [entry["loss"] for entry in trained.history if "loss" in entry]


def test_the_paper_preset_learns(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    changes = {"base": str(TINY_T5), "learning_rate": 3e-3, "epochs": 12}
    recipe = recipe_from("paper", changes)
    trained = train(recipe, PAIRS, some_pairs(20, seed=1), tmp_path, quiet=True)
    first, *_, last = losses(trained)
    assert last < first / 2
    evaluated = [entry for entry in trained.history if "eval_auc" in entry]
    assert len(evaluated) >= recipe.epochs
    assert [path.name for path in tmp_path.iterdir()] == [WORK]
    assert capfd.readouterr().out == ""
    finish(tmp_path)
    assert not list(tmp_path.iterdir())
    finish(tmp_path)


@pytest.mark.parametrize(
    ("recipe", "pairs"),
    [(STEPS.model_copy(update={"seed": 1}), PAIRS), (STEPS, PAIRS[1:])],
    ids=["recipe", "data"],
)
@pytest.mark.nightly
def test_another_run_in_the_same_folder_is_refused(
    whole: tuple[Trained, Path], recipe: Recipe, pairs: list[Pair]
) -> None:
    with pytest.raises(TrainingError, match=r"another recipe or other data.*delete that folder"):
        train(recipe, pairs, [], whole[1], quiet=True)


@pytest.mark.parametrize("epochs", [1, 4], ids=["short", "long"])
def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path, epochs: int) -> None:
    from safetensors.numpy import load_file, save_file

    base = tiny_bert(tmp_path / "base")
    broken = load_file(base / "model.safetensors")
    broken["pooler.dense.weight"][:] = np.nan
    save_file(broken, base / "model.safetensors", metadata={"format": "pt"})
    recipe = small_recipe(base, epochs=epochs)
    with pytest.raises(TrainingError, match=r"the loss at step \d+ is nan.*learning_rate"):
        train(recipe, PAIRS, [], tmp_path / "output", quiet=True)
    changed = recipe.model_copy(update={"evaluations": 2})
    with pytest.raises(TrainingError, match=r"development data is nan.*learning_rate"):
        train(changed, PAIRS, PAIRS, tmp_path / "evaluated", quiet=True)
    assert [path.name for path in (tmp_path / "output").iterdir()] == [WORK]


# peft 0.21 asks transformers by a name that is going to be removed.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.nightly
def test_low_rank_adapters_are_merged_before_they_are_saved(bert: Path, tmp_path: Path) -> None:
    recipe = small_recipe(bert, method="lora", lora_rank=4, epochs=4, learning_rate=1e-2)
    trained = train(recipe, PAIRS, [], tmp_path, quiet=True)
    assert losses(trained)[-1] < losses(trained)[0]
    expected = outputs_of(trained.trainee, PAIRS, 48)
    (tmp_path / ".new").mkdir()
    (tmp_path / ".new" / "model.safetensors").write_text("what a killed run had written")
    save(trained.trainee, tmp_path, ModelCard(kind="cross_encoder", base="b"))
    assert not list(tmp_path.glob(".n*"))
    assert not list(tmp_path.glob("adapter*"))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    evaluator = CrossEncoderEvaluator(tmp_path, device="cpu")
    asked = [(pair.question, with_title(pair.title, pair.text)) for pair in PAIRS]
    found = [evaluator.score(question, [text])[0] for question, text in asked]
    assert found == pytest.approx(np.tanh(expected / 2).tolist(), abs=1e-4)


@pytest.mark.nightly
def test_early_stopping_keeps_the_best_model(bert: Path, tmp_path: Path) -> None:
    development = [
        pair._replace(label=1 - pair.label) if number % 3 == 0 else pair
        for number, pair in enumerate(some_pairs(30, seed=3))
    ]
    recipe = small_recipe(bert, epochs=30, early_stopping=2, evaluations=1, learning_rate=1e-2)
    trained = train(recipe, PAIRS, development, tmp_path, quiet=True)
    found = [entry["eval_auc"] for entry in trained.history if "eval_auc" in entry]
    assert len(found) < 30
    assert found[-3] == max(found) > max(found[-2:], default=0) or len(set(found[-3:])) == 1
    scores = outputs_of(trained.trainee, development, 48).tolist()
    assert quality(development, scores)["auc"] == pytest.approx(max(found))
    with pytest.raises(TrainingError, match="other data"):
        train(recipe, PAIRS, development[1:], tmp_path, quiet=True)


@pytest.mark.parametrize("accumulation", [1, 4])
@pytest.mark.nightly
def test_the_loss_is_the_mean_over_accumulated_batches(
    bert: Path, tmp_path: Path, accumulation: int
) -> None:
    recipe = small_recipe(
        bert, accumulation=accumulation, batch_size=2, epochs=2, learning_rate=1e-9, dropout=0.0
    )
    trained = train(recipe, PAIRS, [], tmp_path, quiet=True)
    outputs = outputs_of(load_trainee(recipe)._replace(model=trained.trainee.model), PAIRS, 48)
    labels = np.array([pair.label for pair in PAIRS])
    expected = float(np.mean(np.logaddexp(0, outputs) - labels * outputs))
    assert losses(trained)[0] == pytest.approx(expected, rel=0.25)

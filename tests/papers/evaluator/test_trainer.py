"""Training runs of seconds: what they learn from, that they learn, and how they fail."""

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

from crag.correction.scoring import with_title
from crag.errors import TrainingError
from crag.evaluators import CrossEncoderEvaluator
from crag.models.model_card import ModelCard
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.recipe import Recipe, recipe_from
from crag.papers.evaluator.trainer import Trained, Trainee, example_of, load_trainee, train
from crag.papers.saving import save_model
from crag.papers.training import WORK, finish
from tests.trained import TINY_T5, outputs_of, small_recipe, some_pairs, tiny_bert

PAIRS = some_pairs(40)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert"))


def losses(trained: Trained) -> list[float]:
    return [entry["loss"] for entry in trained.history if "loss" in entry]


def read_by_t5(pair: Pair, **recipe: Any) -> dict[str, Any]:
    tokenizer: Any = AutoTokenizer.from_pretrained(TINY_T5)
    trainee = Trainee(None, tokenizer, "t5")  # type: ignore[arg-type]
    draw = Random(0)  # noqa: S311 - a title, no secret
    return example_of(pair, Recipe.model_validate(recipe), trainee, draw)


@pytest.mark.parametrize(
    ("loss", "labels"), [("squared", [1.0, 0.0, -1.0]), ("cross_entropy", [1.0, 0.5, 0.0])]
)
def test_labels_as_the_loss_expects(loss: str, labels: list[float]) -> None:
    pairs = [Pair("q", "", "text", label) for label in (1.0, 0.5, 0.0)]
    assert [read_by_t5(pair, loss=loss)["labels"] for pair in pairs] == labels


@pytest.mark.parametrize(
    ("title", "drop", "read"),
    [
        ("Ada", 0, "Who was she? [SEP] Ada // Ada did."),
        ("Ada", 1, "Who was she? [SEP] Ada did."),
        ("Ada", 0.999, "Who was she? [SEP] Ada did."),
        ("Bell", 0.999, "Who was she? [SEP] Bell // Ada did."),
    ],
)
def test_a_t5_reads_one_text_and_only_titles_that_it_names_are_dropped(
    title: str, drop: float, read: str
) -> None:
    tokenizer: Any = AutoTokenizer.from_pretrained(TINY_T5)
    found = read_by_t5(Pair("Who was she?", title, "Ada did.", 1.0), drop_titles=drop)
    assert found["input_ids"] == tokenizer(read)["input_ids"]
    cut = read_by_t5(Pair("Who was she?", title, "Ada did.", 1.0), max_length=8)
    assert len(cut["input_ids"]) == 8


def test_the_paper_preset_learns(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    changes = {"base": str(TINY_T5), "learning_rate": 1e-2, "epochs": 12}
    trained = train(recipe_from("paper", changes), PAIRS, tmp_path, quiet=True)
    first, *_, last = losses(trained)
    assert last < first / 2
    assert [path.name for path in tmp_path.iterdir()] == [WORK]
    assert capfd.readouterr().out == ""
    finish(tmp_path)
    finish(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("epochs", [1, 4], ids=["short", "long"])
def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path, epochs: int) -> None:
    from safetensors.numpy import load_file, save_file

    base = tiny_bert(tmp_path / "base")
    broken = load_file(base / "model.safetensors")
    broken["pooler.dense.weight"][:] = np.nan
    save_file(broken, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TrainingError, match=r"the loss at step \d+ is nan.*learning_rate"):
        train(small_recipe(base, epochs=epochs), PAIRS, tmp_path / "output", quiet=True)
    assert [path.name for path in (tmp_path / "output").iterdir()] == [WORK]


# peft 0.21 asks transformers by a name that is going to be removed.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.nightly
def test_low_rank_adapters_are_merged_before_they_are_saved(bert: Path, tmp_path: Path) -> None:
    recipe = small_recipe(bert, method="lora", lora_rank=4, epochs=4, learning_rate=1e-2)
    trained = train(recipe, PAIRS, tmp_path, quiet=True)
    assert losses(trained)[-1] < losses(trained)[0]
    expected = outputs_of(trained.trainee, PAIRS, 48)
    (tmp_path / ".new").mkdir()
    (tmp_path / ".new" / "model.safetensors").write_text("what a killed run had written")
    trainee, card = trained.trainee, ModelCard(kind="cross_encoder", base="b")
    save_model(trainee.model, trainee.tokenizer, tmp_path, card)
    assert not list(tmp_path.glob(".n*"))
    assert not list(tmp_path.glob("adapter*"))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    evaluator = CrossEncoderEvaluator(tmp_path, device="cpu")
    asked = [(pair.question, with_title(pair.title, pair.text)) for pair in PAIRS]
    found = [evaluator.score(question, [text])[0] for question, text in asked]
    assert found == pytest.approx(np.tanh(expected / 2).tolist(), abs=1e-4)


@pytest.mark.parametrize("accumulation", [1, 4])
@pytest.mark.nightly
def test_the_loss_is_the_mean_over_accumulated_batches(
    bert: Path, tmp_path: Path, accumulation: int
) -> None:
    recipe = small_recipe(
        bert, accumulation=accumulation, batch_size=2, epochs=2, learning_rate=1e-9, dropout=0.0,
        drop_titles=0,
    )  # fmt: skip
    trained = train(recipe, PAIRS, tmp_path, quiet=True)
    outputs = outputs_of(load_trainee(recipe)._replace(model=trained.trainee.model), PAIRS, 48)
    labels = np.array([pair.label for pair in PAIRS])
    expected = float(np.mean(np.logaddexp(0, outputs) - labels * outputs))
    assert losses(trained)[0] == pytest.approx(expected, rel=0.25)

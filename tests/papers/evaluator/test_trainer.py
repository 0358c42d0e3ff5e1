"""Training runs of seconds: what they learn from, that they learn, and how they fail."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from transformers import AutoTokenizer

from crag.errors import CragError, SettingsError
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.trainer import Recipe, Trainee, example_of, recipe_from, train
from crag.papers.training import WORK, finish
from tests.trained import TINY_T5, outputs_of, small_recipe, some_pairs, tiny_bert

PAIRS = some_pairs(40)


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


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("epochs", 0, "equal to 1"),
        ("epoch", 3, "there are: learning_rate, batch_size"),
    ],
)
def test_a_value_out_of_range_is_named(name: str, value: object, allowed: str) -> None:
    with pytest.raises(SettingsError, match=f"setting '{name}' cannot be .*{allowed}"):
        recipe_from("default", {name: value})


def test_the_paper_preset_learns(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    changes = {"base": str(TINY_T5), "learning_rate": 1e-2, "epochs": 12}
    outputs = outputs_of(train(recipe_from("paper", changes), PAIRS, tmp_path), PAIRS, 512)
    right = np.array([pair.positive for pair in PAIRS])
    assert outputs[right].mean() > outputs[~right].mean() + 1
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
    with pytest.raises(CragError, match=r"the loss at step \d+ is nan.*learning_rate"):
        train(small_recipe(base, epochs=epochs), PAIRS, tmp_path / "output")
    assert [path.name for path in (tmp_path / "output").iterdir()] == [WORK]

"""The numbers of a run."""

import json
from importlib.resources import files

import pytest

from crag.errors import SettingsError
from crag.papers.evaluator.recipe import recipe_from
from crag.papers.reader.encoder import EncoderRecipe
from crag.papers.training import valid_recipe


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("epochs", 0, "equal to 1"),
        ("epochs", "many", "valid integer"),
        ("learning_rate", 0, "greater than 0"),
        ("learning_rate", 2, "equal to 1"),
        ("dropout", 1, "less than 1"),
        ("loss", "hinge", "'cross_entropy' or 'squared'"),
        ("epoch", 3, "there are: learning_rate, batch_size"),
        ("seed", -1, "equal to 0"),
    ],
)
def test_a_value_out_of_range_is_named(name: str, value: object, allowed: str) -> None:
    with pytest.raises(SettingsError, match=f"setting '{name}' cannot be .*{allowed}"):
        recipe_from("default", {name: value})


def test_the_recipe_of_the_shipped_encoder_is_one_that_its_command_takes() -> None:
    card = files("crag.models").joinpath("crag_minilm_l6_v2", "card.json").read_text("utf-8")
    told = json.loads(card)["recipe"]
    told.pop("teacher", None)  # An option of its own.
    assert valid_recipe(EncoderRecipe, told).model_dump(mode="json") == told

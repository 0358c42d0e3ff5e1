"""The numbers of a run."""

import pytest

from crag.errors import SettingsError
from crag.models.minilm import MODEL
from crag.papers.training.recipe import PRESETS, Recipe, recipe_from


def test_the_default_is_that_of_the_shipped_evaluator() -> None:
    recipe = recipe_from("default", {})
    assert recipe == Recipe()
    assert (recipe.base, recipe.loss, recipe.epochs, recipe.blend) == (
        MODEL,
        "cross_entropy",
        1,
        0.1,
    )


def test_the_paper_is_that_of_the_official_code() -> None:
    recipe = recipe_from("paper", {"base": "elsewhere"})
    assert recipe.base == "elsewhere"
    assert (recipe.loss, recipe.epochs, recipe.batch_size, recipe.max_length) == (
        "squared",
        8,
        12,
        512,
    )
    assert (recipe.learning_rate, recipe.weight_decay, recipe.warmup) == (1e-4, 0.01, 0.0)
    assert (recipe.drop_titles, recipe.dropout, recipe.blend) == (1.0, None, 0.0)
    assert PRESETS["paper"]["base"] == "t5-large"


def test_texts_from_the_command_line_are_read() -> None:
    recipe = recipe_from("default", {"epochs": "3", "bf16": "true", "dropout": None, "blend": "0"})
    assert (recipe.epochs, recipe.bf16, recipe.dropout, recipe.blend) == (3, True, None, 0.0)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("epochs", 0, "greater than or equal to 1"),
        ("epochs", "many", "valid integer"),
        ("learning_rate", 0, "greater than 0"),
        ("learning_rate", float("nan"), "less than or equal to 1"),
        ("learning_rate", 2, "less than or equal to 1"),
        ("dropout", 1, "less than 1"),
        ("loss", "hinge", "'cross_entropy' or 'squared'"),
        ("blend", 0.6, "less than or equal to 0.5"),
        ("epoch", 3, "there are: base, method"),
        ("seed", -1, "greater than or equal to 0"),
    ],
)
def test_a_value_out_of_range_is_named(name: str, value: object, allowed: str) -> None:
    with pytest.raises(SettingsError, match=f"setting '{name}' cannot be .*{allowed}"):
        recipe_from("default", {name: value})


def test_early_stopping_needs_evaluations() -> None:
    with pytest.raises(SettingsError, match="'evaluations' cannot be 0: early stopping needs"):
        recipe_from("default", {"early_stopping": 2, "evaluations": 0})


def test_every_number_is_described() -> None:
    assert all(field.description for field in Recipe.model_fields.values())

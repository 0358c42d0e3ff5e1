"""Settings refuse what is out of range, and tasks fill in the paper's numbers."""

import pytest
from pydantic import ValidationError

from crag.errors import SettingsError
from crag.papers.settings import PaperSettings
from crag.papers.tasks import TASKS
from crag.settings import Settings, settings_from


@pytest.mark.parametrize(
    ("values", "field", "hint"),
    [
        ({"k": 0}, "k", "at least 1"),
        ({"k": "many"}, "k", "whole number"),
        ({"uper": 0.5}, "uper", "did you mean upper?"),
        ({"zzz": 0.5}, "zzz", "known are k, "),
        ({"UPPER": 0.5}, "UPPER", "did you mean upper"),
        ({"delta": 1.1}, "delta", "at most 1"),
        ({"max_depth": 65}, "max_depth", "64"),
        ({"weight_utility": float("nan")}, "weight_utility", "number"),
        ({"": 0.5}, "", "setting '' cannot be 0.5: unknown name"),
        ({"upper": 0.1, "lower": 0.2}, "upper, lower", "must not be above"),
        ({"find_by": "taste"}, "find_by", "'both', 'meaning' or 'words'"),
        ({"since": "last week"}, "since", "a day as 2026-01-31"),
        ({"since": "2026-02-01", "until": "2026-01-31"}, "until", "not be before since"),
        ({"strips_kept": 0}, "strips_kept", "1"),
        ({"upper": float("nan")}, "upper", "100"),
    ],
)
def test_a_wrong_setting_names_field_value_and_range(
    values: dict[str, object], field: str, hint: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        settings_from(values)
    assert caught.value.field == field
    assert field in str(caught.value)
    assert hint in str(caught.value)


def test_settings_are_validated_as_they_are_and_nothing_else_is_settings() -> None:
    assert Settings.model_validate(Settings(k=3)).k == 3
    with pytest.raises(
        SettingsError, match=r"'settings' cannot be 7: write names and their values"
    ):
        Settings.model_validate(7)


@pytest.mark.parametrize(
    ("task", "upper", "lower"),
    [
        ("popqa", 0.592, -0.995),
        ("pubhealth", 0.5, -0.915),
        ("arc", 0.5, -0.915),
        ("biography", 0.95, -0.91),
    ],
)
def test_a_task_brings_the_papers_numbers(task: str, upper: float, lower: float) -> None:
    settings = PaperSettings.model_validate({"task": task})
    assert (settings.upper, settings.lower) == (upper, lower)
    assert settings.max_answer_tokens == 100
    assert PaperSettings.model_validate({"task": task, "upper": 0.9}).upper == 0.9


def test_every_preset_is_valid_and_the_default_leaves_thresholds_to_the_evaluator() -> None:
    for task in TASKS:
        assert PaperSettings(task=task).task == task
    assert Settings().upper is None
    assert Settings().strip_threshold == -0.5
    assert Settings().strips_kept is None
    assert all(
        PaperSettings(task=task).strip_scores == "alone" for task in TASKS if task != "default"
    )


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        Settings().k = 3  # type: ignore[misc]


def test_every_field_is_described_on_one_line() -> None:
    for name, field in Settings.model_json_schema()["properties"].items():
        assert field["description"], name
        assert "\n" not in field["description"]
        assert "default" in field, name

"""Settings and state refuse what is out of range, and tasks fill in the paper's numbers."""

from typing import Any

import pytest
from pydantic import ValidationError

from crag.correction.provenance import unscored
from crag.errors import QuestionError, SettingsError
from crag.papers.settings import PaperSettings
from crag.papers.tasks import TASKS
from crag.settings import Settings
from crag.state import Source, State, Strip, StripKind, add_chat, replace_strips


@pytest.mark.parametrize(
    ("values", "field", "hint"),
    [
        ({"k": 0}, "k", "cannot be 0: Input should be greater than or equal to 1"),
        ({"k": "many"}, "k", "cannot be 'many': Input should be a valid integer"),
        ({"uper": 0.5}, "uper", "did you mean upper?"),
        ({"weight_utility": float("nan")}, "weight_utility", "number"),
        ({"upper": 0.1, "lower": 0.2}, "upper, lower", "must not be above"),
        (7, "settings", "cannot be 7: Input should be a valid dictionary"),
    ],
)
def test_a_wrong_setting_names_field_value_and_range(values: object, field: str, hint: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.model_validate(values)
    assert caught.value.field == field
    assert field in str(caught.value)
    assert hint in str(caught.value)


def test_none_as_text_unsets_what_is_optional() -> None:
    settings = PaperSettings.model_validate(
        {"strip_threshold": "None", "folder": "", "titles": "none"}
    )
    assert (settings.strip_threshold, settings.folder, settings.titles) == (None, None, "none")


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
    assert settings.profile.benchmark
    assert PaperSettings.model_validate({"task": task, "upper": 0.9}).upper == 0.9


def test_every_preset_is_valid_and_frozen() -> None:
    for task in TASKS:
        assert PaperSettings(task=task).task == task
    with pytest.raises(ValidationError):
        Settings().k = 3  # type: ignore[misc]


def test_every_field_is_described_on_one_line() -> None:
    for name, field in Settings.model_json_schema()["properties"].items():
        assert field["description"], name
        assert "\n" not in field["description"]
        assert "default" in field, name


SOURCE = Source(id="a", title="", url="", position="")


def test_the_state_has_sixteen_keys() -> None:
    assert set(State.__annotations__) == {
        "messages", "question", "asked", "documents", "thresholds", "action", "query", "pages",
        "strips", "answer", "outcome", "citations", "sentences", "events", "usage", "reflection",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"role": "robot", "content": "Who?"}, "Unexpected message type"),
        ({"content": "Who?"}, "role"),
        (7, "int"),
        ({"role": "user", "content": 7}, "content"),
    ],
)
def test_what_is_no_message_is_refused_with_the_form_of_one(message: Any, problem: str) -> None:
    with pytest.raises(QuestionError) as caught:
        add_chat([], [message])
    told = str(caught.value)
    assert told.startswith("`messages` cannot be read: ")
    assert problem in told
    assert 'Write each as {"role": "user", "content": "…"}' in told
    assert "\n" not in told


def strip(text: str, kind: StripKind) -> Strip:
    return unscored(text, SOURCE, kind)


def test_strips_replace_those_of_their_kind_and_documents_come_first() -> None:
    web, other = strip("web", "web"), strip("other web", "web")
    document = strip("document", "document")
    known = replace_strips([], [web])
    known = replace_strips(known, [document])
    assert known == [document, web]
    assert replace_strips(known, [other]) == [document, other]
    assert replace_strips(known, []) == known

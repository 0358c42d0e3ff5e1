"""The form shows every setting once, in groups, and leaves the schema a JSON schema."""

from typing import Any

from crag.settings import Settings
from crag.settings_form import ABLATIONS, BASIC, GROUPS, arrange

SHOWN = [(name, shown) for group in GROUPS.values() for name, shown in group.items()]


def test_every_setting_is_shown_once() -> None:
    assert sorted(name for name, _ in SHOWN) == sorted(Settings.model_fields)


def test_every_level_names_settings_that_there_are() -> None:
    assert not BASIC & ABLATIONS
    assert set(Settings.model_fields) > BASIC | ABLATIONS
    fields = Settings.model_json_schema()["properties"]
    levels = [fields[name]["level"] for name in ("k", "without", "beam_width")]
    assert levels == ["basic", "ablations", "advanced"]


def test_the_schema_has_the_order_of_the_form() -> None:
    fields = Settings.model_json_schema()["properties"]
    assert list(fields) == [name for name, _ in SHOWN]
    assert (fields["k"]["title"], fields["k"]["group"]) == ("Documents to retrieve", "Retrieval")
    assert fields["titles"]["langgraph_nodes"] == ["grade", "refine", "web"]
    assert "langgraph_nodes" not in fields["contextualize"]


def test_an_unnamed_setting_comes_last_and_keeps_its_title() -> None:
    field = {"title": "Own", "description": "Two\n    lines.", "type": "integer", "minimum": 1}
    schema: dict[str, Any] = {"properties": {"own": field, "k": field, "task": field}}
    arrange(schema)
    assert list(schema["properties"]) == ["task", "k", "own"]
    assert schema["properties"]["own"] == field | {"description": "Two lines."}
    assert schema["properties"]["k"]["minimum"] == 1

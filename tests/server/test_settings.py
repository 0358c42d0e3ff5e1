"""The settings as Studio and other forms read them from the server."""

from typing import Any

import pytest

from crag.errors import SettingsError
from crag.settings import Settings
from crag.settings_form import GROUPS
from crag.tasks import TASKS
from tests.server.asking import GRAPHS, INCORRECT, INPUT, assistant

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fields(client: Any) -> dict[str, dict[str, Any]]:
    schema = client.assistants.get_schemas(assistant(client, "crag"))["context_schema"]
    found: dict[str, dict[str, Any]] = schema["properties"]
    return found


def test_every_field_has_a_title_a_description_a_group_and_a_default(
    fields: dict[str, dict[str, Any]],
) -> None:
    assert set(fields) == set(Settings.model_fields)
    for name, field in fields.items():
        assert field["description"], name
        assert field["group"] in GROUPS, name
        assert "default" in field, name
        generated = name.replace("_", " ").title()
        assert field["title"] != generated or name in {"refine", "rewrite"}, name
    titles = [field["title"] for field in fields.values()]
    assert len(set(titles)) == len(titles)


def test_the_fields_come_in_the_order_of_their_groups(fields: dict[str, dict[str, Any]]) -> None:
    assert list(fields) == [name for group in GROUPS.values() for name in group]
    assert list(fields)[:3] == ["task", "k", "rerank_from"]


def test_bounds_choices_and_presets_are_told(fields: dict[str, dict[str, Any]]) -> None:
    assert (fields["k"]["minimum"], fields["k"]["maximum"]) == (1, 1000)
    number, nothing = fields["upper"]["anyOf"]
    assert number == {"type": "number", "minimum": -100, "maximum": 100}
    assert nothing == {"type": "null"}
    assert fields["task"]["enum"] == list(TASKS)
    assert fields["task"]["presets"] == {name: one.settings for name, one in TASKS.items()}


def test_the_nodes_that_read_a_setting_are_nodes_of_a_graph(
    client: Any, fields: dict[str, dict[str, Any]]
) -> None:
    drawn = [client.assistants.get_graph(assistant(client, graph)) for graph in GRAPHS]
    nodes = {node["id"] for graph in drawn for node in graph["nodes"]}
    named = {node for field in fields.values() for node in field.get("langgraph_nodes", [])}
    assert named == nodes - {"__start__", "__end__", "pass_through", "acknowledge"}


def test_settings_are_read_where_they_were_before_there_was_a_context(client: Any) -> None:
    config: Any = {"configurable": INCORRECT}
    state = client.runs.wait(None, assistant(client, "crag"), input=INPUT, config=config)
    assert state["action"] == "incorrect"


def test_no_setting_takes_a_key(fields: dict[str, dict[str, Any]]) -> None:
    for name, field in fields.items():
        kinds = field.get("anyOf", [field])
        free = [kind for kind in kinds if kind["type"] == "string" and "enum" not in kind]
        assert all(kind.get("format") == "date" for kind in free) or name == "folder", name
        items = [kind["items"] for kind in kinds if kind["type"] == "array"]
        assert all("enum" in item for item in items) or name == "undesired", name
    with pytest.raises(SettingsError, match="no critique tokens"):
        Settings(undesired=frozenset({"sk-0123456789"}))

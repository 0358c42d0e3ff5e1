"""Which settings a node of ours finds within somebody's own graph."""

from typing import Any

import pytest
from langgraph.graph import StateGraph

from crag.errors import SettingsError
from crag.graph import build_crag
from crag.settings import Settings
from crag.state import State

QUESTION: Any = {"question": "Who wrote the first program?"}


def asked_within(make_parts: Any, schema: Any, context: Any) -> Any:
    """Return how many documents a node finds in a graph with this schema and context."""
    graph: Any = StateGraph(State, context_schema=schema)
    graph.add_node("crag", build_crag(make_parts()))
    graph.set_entry_point("crag")
    return len(graph.compile().invoke(QUESTION, context=context)["documents"])


@pytest.mark.parametrize("schema", [None, Settings, dict])
def test_settings_reach_a_node_whatever_the_schema_of_the_graph_around(
    make_parts: Any, schema: Any
) -> None:
    assert asked_within(make_parts, schema, {"k": 1}) == 1
    assert asked_within(make_parts, schema, Settings(k=1)) == 1


@pytest.mark.parametrize("context", [None, {}, {"k": 1, "user": "ada"}, "k"])
def test_a_context_of_other_things_leaves_the_defaults(make_parts: Any, context: Any) -> None:
    assert asked_within(make_parts, None, context) == 2


def test_an_invalid_setting_is_refused_there_too(make_parts: Any) -> None:
    with pytest.raises(SettingsError, match="'k' cannot be 0: it must be at least 1"):
        asked_within(make_parts, None, {"k": 0})

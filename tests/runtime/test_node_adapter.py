"""How nodes run: with whose settings, side by side, once in a trace."""

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import ChatResult
from langgraph.graph import StateGraph

from crag.errors import SettingsError
from crag.graph import build_crag
from crag.settings import Settings
from crag.state import State
from crag.testing import FakeChatModel

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
    with pytest.raises(SettingsError, match="'k' cannot be 0: Input should be"):
        asked_within(make_parts, None, {"k": 0})


async def test_questions_wait_for_the_model_side_by_side_and_for_no_thread(make_parts: Any) -> None:
    """Each call ends only when all have begun, and there are fewer threads than calls."""
    meet = asyncio.Barrier(50)

    class Model(FakeChatModel):
        async def _agenerate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
            await meet.wait()
            return self._generate(messages)

    graph = build_crag(make_parts(model=Model(replies=["Ada did [1]."])))
    async with asyncio.timeout(60):
        states = await asyncio.gather(*(graph.ainvoke(QUESTION) for _ in range(50)))
    assert {state["answer"] for state in states} == {"Ada did [1]."}


class Started(BaseCallbackHandler):
    def __init__(self) -> None:
        self.names: list[str] = []

    def on_chain_start(self, *_: Any, name: str = "", **__: Any) -> None:
        self.names.append(name)


def test_each_node_stands_once_in_a_trace(make_parts: Any) -> None:
    started = Started()
    build_crag(make_parts()).invoke(QUESTION, {"callbacks": [started]})
    nodes = ["open_run", "retrieve", "grade", "refine", "generate"]
    assert [name for name in started.names if name in nodes] == nodes

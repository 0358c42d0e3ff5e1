"""How every graph begins."""

from collections.abc import Hashable
from typing import TypeAlias

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from crag.errors import CragError
from crag.graph.routes import by_history
from crag.nodes.acknowledge import acknowledge
from crag.nodes.contextualize import Contextualize
from crag.nodes.open_run import open_run
from crag.parts import Parts
from crag.runtime.node_adapter import as_node
from crag.settings import Settings
from crag.state import InputState, State

Graph: TypeAlias = CompiledStateGraph[State, Settings, InputState, State]
"""A compiled graph; a run takes its settings as `context`, an object or a dictionary."""


Builder: TypeAlias = StateGraph[State, Settings, InputState, State]
"""A graph that is not compiled yet."""


def opened_graph(first: str, chat: Parts | None = None) -> Builder:
    """Return a graph that begins with open_run → `first`.

    A follow-up question in a chat passes contextualize between them; what asks nothing, such as
    thanks, goes to acknowledge and ends. Without the parts for a chat, all is used as it was asked.
    """
    if not isinstance(chat, Parts | None):
        raise CragError(f"a graph is built of Parts(retriever=…), not of {type(chat).__name__}")
    graph = Builder(State, context_schema=Settings, input_schema=InputState)
    graph.add_node("open_run", as_node(open_run))
    graph.add_edge(START, "open_run")
    if chat is None:
        graph.add_edge("open_run", first)
        return graph
    graph.add_node("contextualize", as_node(Contextualize(chat.model, chat.prompts)))
    graph.add_node("acknowledge", as_node(acknowledge))
    paths: dict[Hashable, str] = {
        "nothing asked": "acknowledge", "follow-up": "contextualize", "first question": first,
    }  # fmt: skip
    graph.add_conditional_edges("open_run", by_history, paths)
    graph.add_edge("contextualize", first)
    graph.add_edge("acknowledge", END)
    return graph

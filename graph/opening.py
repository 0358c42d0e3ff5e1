"""How every graph begins."""

from collections.abc import Hashable
from typing import Any

from langgraph.graph import START, StateGraph

from crag.graph.routes import by_history
from crag.nodes.contextualize import Contextualize
from crag.nodes.open_run import OpenRun
from crag.parts import Parts
from crag.runtime.node_adapter import computing, waiting
from crag.settings import Settings
from crag.state import InputState, State


def open_run_before(
    first: str, graph: StateGraph[State, Settings, InputState, Any], chat: Parts | None = None
) -> None:
    """Add open_run → `first`, with contextualize between them for a follow-up question in a chat.

    Without the parts for that, a follow-up question is used as it was asked.
    """
    graph.add_node("open_run", computing(OpenRun()), input_schema=InputState)
    graph.add_edge(START, "open_run")
    if chat is None:
        graph.add_edge("open_run", first)
        return
    graph.add_node("contextualize", waiting(Contextualize(chat.model, chat.prompts)))
    paths: dict[Hashable, str] = {"follow-up": "contextualize", "first question": first}
    graph.add_conditional_edges("open_run", by_history, paths)
    graph.add_edge("contextualize", first)

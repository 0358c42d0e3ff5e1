"""The web branch: rewrite → confirm_search → search → read_pages → select (CRAG, Sec. 4.5).

It is a subgraph because LangGraph starts a step only after the last one has finished on every
branch. As one node of the outer graph, the whole branch runs in parallel with refinement.
"""

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from crag.events import Event
from crag.graph.routes import CONFIRMATION, by_confirmation
from crag.nodes.confirm_search import confirm_search
from crag.nodes.read_pages import read_pages
from crag.nodes.rewrite import Rewrite
from crag.nodes.search import search
from crag.nodes.select import select
from crag.parts import Parts
from crag.runtime.node_adapter import as_node
from crag.settings import Settings
from crag.state import State, Strip, Usage, WebPage


class WebInput(TypedDict):
    """The input of the branch; its strips and events start empty, and the outer graph adds them."""

    question: str


class WebOutput(TypedDict):
    """The output of the branch; `usage` is its own, which the outer graph adds."""

    query: str
    pages: list[WebPage]
    strips: list[Strip]
    events: list[Event]
    usage: Usage


def build_web(
    parts: Parts,
) -> CompiledStateGraph[State, Settings, WebInput, WebOutput]:
    """Compile the branch as one node of a graph.

    Whether a human is asked is decided before `confirm_search`, so a run that waits there asks,
    whatever the settings of the call that resumes it.
    """
    graph = StateGraph(
        State, context_schema=Settings, input_schema=WebInput, output_schema=WebOutput
    )
    searches = parts.searcher is not None
    model = parts.model if searches else None  # Without a search no query is worth a call.
    graph.add_node("rewrite", as_node(Rewrite(model, parts.prompts)))
    graph.add_node("search", as_node(search, parts.searcher))
    graph.add_node("read_pages", as_node(read_pages, parts.reader))
    graph.add_node("select", as_node(select, parts.evaluator))
    graph.add_edge(START, "rewrite")
    if searches:
        graph.add_node(
            "confirm_search",
            as_node(confirm_search),
            destinations={"search": "approved", "select": "refused"},
        )
        graph.add_conditional_edges("rewrite", by_confirmation, CONFIRMATION)
    else:
        graph.add_edge("rewrite", "search")
    graph.add_edge("search", "read_pages")
    graph.add_edge("read_pages", "select")
    graph.add_edge("select", END)
    return graph.compile(name="web")

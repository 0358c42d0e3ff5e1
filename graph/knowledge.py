"""Corrective RAG without the answer, for chains and graphs that write their own."""

from langgraph.graph import END
from langgraph.types import Checkpointer

from crag.graph.opening import Graph, opened_graph
from crag.graph.routes import BRANCHES, by_action
from crag.graph.web import build_web
from crag.nodes.grade import Grade
from crag.nodes.refine import Refine
from crag.nodes.retrieve import Retrieve
from crag.parts import Parts
from crag.runtime.node_adapter import as_node


def build_knowledge(parts: Parts, *, checkpointer: Checkpointer = None) -> Graph:
    """Compile open_run → retrieve → grade → refine and/or web: `build_crag` up to the knowledge.

    The kept strips are in `strips` of the state; `answer` stays empty. Ambiguous runs both branches
    in parallel. A follow-up question in a chat is used as it was asked.
    """
    graph = opened_graph("retrieve")
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever, parts.reranker)))
    graph.add_node("grade", as_node(Grade(parts.evaluator)))
    graph.add_node("refine", as_node(Refine(parts.evaluator)))
    graph.add_node("web", build_web(parts))
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", by_action, BRANCHES)
    graph.add_edge("refine", END)
    graph.add_edge("web", END)
    return graph.compile(checkpointer=checkpointer, name="knowledge")

"""Corrective RAG (CRAG, Fig. 2 and Algorithm 1), with the answer and without."""

from langgraph.graph import END
from langgraph.types import Checkpointer

from crag.graph.opening import Builder, Graph, opened_graph
from crag.graph.routes import BRANCHES, by_action
from crag.graph.web import build_web
from crag.nodes.generate import Generate
from crag.nodes.grade import grade
from crag.nodes.refine import refine
from crag.nodes.retrieve import Retrieve
from crag.parts import Parts
from crag.runtime.node_adapter import as_node


def add_correction(graph: Builder, parts: Parts) -> None:
    """Add retrieve → grade, and the branches refine and web; what follows grade is not wired."""
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("grade", as_node(grade, parts.evaluator))
    graph.add_node("refine", as_node(refine, parts.evaluator))
    graph.add_node("web", build_web(parts))
    graph.add_edge("retrieve", "grade")


def build_crag(parts: Parts, *, checkpointer: Checkpointer = None) -> Graph:
    """Compile open_run → retrieve → grade → refine and/or web → generate.

    Ambiguous runs both branches in parallel. `generate` is deferred, so it joins the branches and
    runs once. There is one pass and no cycle, as in the paper.
    """
    graph = opened_graph("retrieve", parts)
    add_correction(graph, parts)
    graph.add_node("generate", as_node(Generate(parts)), defer=True)
    graph.add_conditional_edges("grade", by_action, BRANCHES)
    graph.add_edge("refine", "generate")
    graph.add_edge("web", "generate")
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=checkpointer, name="crag")


def build_knowledge(parts: Parts, *, checkpointer: Checkpointer = None) -> Graph:
    """Compile open_run → retrieve → grade → refine and/or web: `build_crag` up to the knowledge.

    For chains and graphs that write the answer themselves. The kept strips are in `strips` of the
    state; `answer` stays empty. A follow-up question in a chat is used as it was asked.
    """
    graph = opened_graph("retrieve")
    add_correction(graph, parts)
    graph.add_conditional_edges("grade", by_action, BRANCHES)
    graph.add_edge("refine", END)
    graph.add_edge("web", END)
    return graph.compile(checkpointer=checkpointer, name="knowledge")

"""Corrective RAG (CRAG, Fig. 2 and Algorithm 1)."""

from langgraph.graph import END
from langgraph.types import Checkpointer

from crag.graph.opening import Graph, opened_graph
from crag.graph.routes import BRANCHES, by_action
from crag.graph.web import build_web
from crag.nodes.generate import Generate
from crag.nodes.grade import Grade
from crag.nodes.refine import Refine
from crag.nodes.retrieve import Retrieve
from crag.parts import Parts
from crag.runtime.node_adapter import as_node


def build_crag(parts: Parts, *, checkpointer: Checkpointer = None) -> Graph:
    """Compile open_run → retrieve → grade → refine and/or web → generate.

    Ambiguous runs both branches in parallel. `generate` is deferred, so it joins the branches and
    runs once. There is one pass and no cycle, as in the paper.
    """
    graph = opened_graph("retrieve", parts)
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever, parts.reranker)))
    graph.add_node("grade", as_node(Grade(parts.evaluator)))
    graph.add_node("refine", as_node(Refine(parts.evaluator)))
    graph.add_node("web", build_web(parts))
    graph.add_node(
        "generate",
        as_node(Generate(parts.model, parts.quoter, parts.prompts, attributor=parts.attributor)),
        defer=True,
    )

    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", by_action, BRANCHES)
    graph.add_edge("refine", "generate")
    graph.add_edge("web", "generate")
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=checkpointer, name="crag")

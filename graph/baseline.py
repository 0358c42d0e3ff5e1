"""Baselines for Corrective RAG: plain retrieval, and no retrieval."""

from langgraph.graph import END
from langgraph.types import Checkpointer

from crag.graph.opening import Graph, opened_graph
from crag.nodes.generate import Generate
from crag.nodes.pass_through import pass_through
from crag.nodes.retrieve import Retrieve
from crag.parts import Parts
from crag.runtime.node_adapter import as_node


def build_rag(parts: Parts, *, checkpointer: Checkpointer = None) -> Graph:
    """Compile open_run → retrieve → pass_through → generate: the model gets every document."""
    graph = opened_graph("retrieve", parts)
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("pass_through", as_node(pass_through))
    graph.add_node("generate", as_node(Generate(parts)))
    graph.add_edge("retrieve", "pass_through")
    graph.add_edge("pass_through", "generate")
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=checkpointer, name="rag")


def build_no_retrieval(parts: Parts, *, checkpointer: Checkpointer = None) -> Graph:
    """Compile open_run → generate: the model answers from its own knowledge."""
    graph = opened_graph("generate")
    graph.add_node("generate", as_node(Generate(parts, own_knowledge=True)))
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=checkpointer, name="no_retrieval")

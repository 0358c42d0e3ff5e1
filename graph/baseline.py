"""Baselines for Corrective RAG: plain retrieval, and no retrieval."""

from langgraph.graph import END, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from crag.graph.opening import open_run_before
from crag.nodes.generate import Generate
from crag.nodes.pass_through import PassThrough
from crag.nodes.retrieve import Retrieve
from crag.parts import Parts
from crag.runtime.node_adapter import computing, waiting
from crag.settings import Settings
from crag.state import InputState, State


def build_rag(
    parts: Parts, *, checkpointer: Checkpointer = None
) -> CompiledStateGraph[State, Settings, InputState, State]:
    """Compile open_run → retrieve → pass_through → generate: the model gets every document."""
    graph = StateGraph(State, context_schema=Settings, input_schema=InputState)
    open_run_before("retrieve", graph, parts)
    graph.add_node("retrieve", waiting(Retrieve(parts.retriever, parts.reranker)))
    graph.add_node("pass_through", computing(PassThrough()))
    graph.add_node(
        "generate",
        waiting(Generate(parts.model, parts.quoter, parts.prompts, attributor=parts.attributor)),
    )
    graph.add_edge("retrieve", "pass_through")
    graph.add_edge("pass_through", "generate")
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=checkpointer, name="rag")


def build_no_retrieval(
    parts: Parts, *, checkpointer: Checkpointer = None
) -> CompiledStateGraph[State, Settings, InputState, State]:
    """Compile open_run → generate: the model answers from its own knowledge."""
    generate = Generate(
        parts.model, parts.quoter, parts.prompts, attributor=parts.attributor, own_knowledge=True
    )
    graph = StateGraph(State, context_schema=Settings, input_schema=InputState)
    open_run_before("generate", graph)
    graph.add_node("generate", waiting(generate))
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=checkpointer, name="no_retrieval")

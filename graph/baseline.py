"""What Corrective RAG is compared with: plain retrieval, and none."""

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from crag.graph.routes import by_history, opens
from crag.nodes.begin import Begin
from crag.nodes.contextualize import Contextualize
from crag.nodes.generate import Generate
from crag.nodes.keep import Keep
from crag.nodes.retrieve import Retrieve
from crag.parts import Parts
from crag.running import computing, waiting
from crag.settings import Settings
from crag.state import InputState, OpenState, State


def build_rag(
    parts: Parts, *, checkpointer: Checkpointer = None
) -> CompiledStateGraph[State, Settings, InputState, State]:
    """Compile retrieve → keep → generate: every document goes to the model, ungraded."""
    graph = StateGraph(State, context_schema=Settings, input_schema=InputState)
    graph.add_node("contextualize", waiting(Contextualize(parts.model)))
    graph.add_node("retrieve", waiting(Retrieve(parts.retriever)), input_schema=OpenState)
    graph.add_node("keep", computing(Keep()))
    graph.add_node("generate", waiting(Generate(parts.model, parts.quoter)))
    graph.add_conditional_edges(START, by_history, opens("retrieve"))
    graph.add_edge("contextualize", "retrieve")
    graph.add_edge("retrieve", "keep")
    graph.add_edge("keep", "generate")
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=checkpointer, name="rag")


def build_no_retrieval(
    parts: Parts, *, checkpointer: Checkpointer = None
) -> CompiledStateGraph[State, Settings, InputState, State]:
    """Compile begin → generate: the model answers from what it knows."""
    generate = Generate(parts.model, parts.quoter, own_knowledge=True)
    graph = StateGraph(State, context_schema=Settings, input_schema=InputState)
    graph.add_node("begin", computing(Begin()), input_schema=InputState)
    graph.add_node("generate", waiting(generate))
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "generate")
    graph.add_edge("generate", END)
    return graph.compile(checkpointer=checkpointer, name="no_retrieval")

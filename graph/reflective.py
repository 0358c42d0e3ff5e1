"""Self-RAG and Self-CRAG, which reflect with tokens (Self-RAG, Alg. 1; CRAG, App. B.2)."""

from langgraph.graph import END
from langgraph.types import Checkpointer

from crag.graph.corrective import add_correction
from crag.graph.opening import Graph, opened_graph
from crag.graph.reflect import OURS, Algorithms, build_reflect
from crag.graph.routes import by_choice, by_knowledge
from crag.nodes.decide import decide
from crag.nodes.prepare_passages import prepare_passages
from crag.nodes.retrieve import Retrieve
from crag.parts import Parts
from crag.runtime.node_adapter import as_node


def build_self_rag(
    parts: Parts, *, checkpointer: Checkpointer = None, algorithms: Algorithms = OURS
) -> Graph:
    """Compile open_run → decide → retrieve → prepare_passages → reflect: Self-RAG.

    `decide` may go to `reflect` at once. The `algorithms` may be those of another program.
    """
    backend = parts.reflection_or_packaged()
    graph = opened_graph("decide", parts)
    graph.add_node("decide", as_node(decide, backend, algorithms.decide))
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("prepare_passages", as_node(prepare_passages, prepared=False))
    reflect = build_reflect(
        backend, parts.retriever, parts.attributor, quoter=parts.quoter, algorithms=algorithms
    )
    graph.add_node("reflect", reflect)
    graph.add_conditional_edges("decide", by_choice)
    graph.add_edge("retrieve", "prepare_passages")
    graph.add_edge("prepare_passages", "reflect")
    graph.add_edge("reflect", END)
    return graph.compile(checkpointer=checkpointer, name="self_rag")


def build_self_crag(
    parts: Parts, *, checkpointer: Checkpointer = None, algorithms: Algorithms = OURS
) -> Graph:
    """Compile open_run → decide → retrieve → grade → … → prepare_passages → reflect.

    Between are refine and/or web: the knowledge that CRAG prepares replaces the documents. If the
    model decides that a question needs no retrieval, it answers directly. The `algorithms` may be
    those of another program.
    """
    backend = parts.reflection_or_packaged()
    graph = opened_graph("decide", parts)
    graph.add_node("decide", as_node(decide, backend, algorithms.decide))
    add_correction(graph, parts)
    graph.add_node("prepare_passages", as_node(prepare_passages, prepared=True), defer=True)
    reflect = build_reflect(
        backend, attributor=parts.attributor, quoter=parts.quoter, algorithms=algorithms
    )
    graph.add_node("reflect", reflect)
    graph.add_conditional_edges("decide", by_choice)
    graph.add_conditional_edges("grade", by_knowledge, ["refine", "web", "prepare_passages"])
    graph.add_edge("refine", "prepare_passages")
    graph.add_edge("web", "prepare_passages")
    graph.add_edge("prepare_passages", "reflect")
    graph.add_edge("reflect", END)
    return graph.compile(checkpointer=checkpointer, name="self_crag")

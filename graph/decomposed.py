"""Corrective RAG for questions of several parts: each part is corrected and answered by itself."""

from langgraph.graph import END
from langgraph.types import Checkpointer

from crag.graph.corrective import build_crag
from crag.graph.opening import Graph, opened_graph
from crag.graph.routes import PLANS, REST, by_plan, by_rest
from crag.graph_registry import PART_TAG
from crag.nodes.answer_part import AnswerPart
from crag.nodes.answer_whole import AnswerWhole
from crag.nodes.combine import Combine
from crag.nodes.decompose import Decompose
from crag.parts import Parts
from crag.runtime.node_adapter import waiting


def build_decomposed(parts: Parts, *, checkpointer: Checkpointer = None) -> Graph:
    """Compile open_run → decompose → answer_whole, or decompose → answer_part, repeated → combine.

    Both answers run the graph of `build_crag`. The cycle is bounded by `Settings.sub_questions`; a
    part may use the answers to earlier ones, so they are asked one after the other.
    """
    crag = build_crag(parts).with_config(tags=[PART_TAG])
    graph = opened_graph("decompose", parts)
    graph.add_node("decompose", waiting(Decompose(parts.model, parts.prompts)))
    graph.add_node("answer_whole", waiting(AnswerWhole(crag)))
    graph.add_node("answer_part", waiting(AnswerPart(crag)))
    graph.add_node(
        "combine", waiting(Combine(parts.model, parts.prompts, attributor=parts.attributor))
    )

    graph.add_conditional_edges("decompose", by_plan, PLANS)
    graph.add_conditional_edges("answer_part", by_rest, REST)
    graph.add_edge("answer_whole", END)
    graph.add_edge("combine", END)
    return graph.compile(checkpointer=checkpointer, name="decomposed")

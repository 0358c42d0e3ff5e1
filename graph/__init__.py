"""The state machines: nodes and edges only."""

from crag.graph.baseline import build_no_retrieval, build_rag
from crag.graph.corrective import build_crag, build_knowledge
from crag.graph.reflect import build_reflect
from crag.graph.reflective import build_self_crag, build_self_rag

__all__ = [
    "build_crag", "build_knowledge", "build_no_retrieval",
    "build_rag", "build_reflect", "build_self_crag", "build_self_rag",
]  # fmt: skip

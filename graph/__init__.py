"""The state machines: which node follows which, and nothing else."""

from crag.graph.baseline import build_no_retrieval, build_rag
from crag.graph.corrective import build_crag

__all__ = ["build_crag", "build_no_retrieval", "build_rag"]

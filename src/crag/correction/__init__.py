"""Corrective RAG as pure functions: action, strips, scores, queries (CRAG, Sec. 4)."""

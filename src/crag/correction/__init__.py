"""Corrective RAG's method, pure: the action, knowledge strips, scores, queries (CRAG, Sec. 4)."""

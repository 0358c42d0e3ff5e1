"""The graphs that servers offer; `langgraph.json` has the same for those who work on them."""

from collections.abc import Mapping

GRAPHS: Mapping[str, str] = {
    "crag": "Corrective RAG: grades what was retrieved, refines or searches the web, answers with "
    "citations.",
    "decomposed": "Corrective RAG for questions of several parts: answers each part, then joins "
    "the answers.",
    "self_crag": "Self-CRAG: corrected knowledge goes to a model that critiques what it reads and "
    "writes.",
    "self_rag": "Self-RAG: the model decides whether to retrieve, and critiques passages, claims "
    "and answer.",
    "rag": "Plain retrieval without correction, to compare with.",
}
"""Names, which are attributes of `crag.graph.studio`, and what is said of them."""

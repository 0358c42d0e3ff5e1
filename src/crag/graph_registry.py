"""The graphs by name: the one list that commands, servers, experiments and telemetry read.

A builder is named here and imported when it is used, so that `crag --help` and telemetry know the
graphs without loading them.
"""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from crag.errors import SettingsError

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Checkpointer

    from crag.parts import Parts

Kind = Literal["offered", "baseline", "unanswered"]
"""Offered by every command and server; only compared with in experiments; or without an answer,
which the program around it writes."""
Need = Literal["retriever", "model", "reflection", "searcher"]
"""A field of `Parts` that a graph cannot do without."""


class GraphEntry(NamedTuple):
    """One graph: module and function of its builder, what people call it, and one line about it."""

    builder: str
    title: str
    description: str
    kind: Kind = "offered"
    needs: tuple[Need, ...] = ("retriever",)

    def build(
        self, parts: "Parts", *, checkpointer: "Checkpointer" = None
    ) -> "CompiledStateGraph[Any, Any, Any, Any]":
        """Compile the graph.

        Raises:
            CragError: the parts lack what it needs.
        """
        return resolve_name(self.builder)(parts, checkpointer=checkpointer)  # type: ignore[no-any-return]


GRAPHS: Mapping[str, GraphEntry] = {
    "crag": GraphEntry(
        "crag.graph.corrective:build_crag", "Corrected",
        "Corrective RAG: grades what was retrieved, refines or searches the web, answers with "
        "citations.",
    ),
    "self_crag": GraphEntry(
        "crag.graph.reflective:build_self_crag", "Corrected and critiqued",
        "Self-CRAG: corrected knowledge goes to a model that critiques what it reads and writes.",
        needs=("retriever", "reflection"),
    ),
    "self_rag": GraphEntry(
        "crag.graph.reflective:build_self_rag", "Critiqued",
        "Self-RAG: the model decides whether to retrieve, and critiques passages, claims and "
        "answer.",
        needs=("retriever", "reflection"),
    ),
    "rag": GraphEntry(
        "crag.graph.baseline:build_rag", "Plain retrieval",
        "Plain retrieval without correction, to compare with.",
    ),
    "no_retrieval": GraphEntry(
        "crag.graph.baseline:build_no_retrieval", "The model alone",
        "The model alone, from its own knowledge.",
        kind="baseline", needs=("model",),
    ),
    "knowledge": GraphEntry(
        "crag.graph.corrective:build_knowledge", "Knowledge alone",
        "Corrective RAG up to the knowledge: strips for a program that writes its own answer.",
        kind="unanswered",
    ),
}  # fmt: skip
"""All graphs, in the order in which they are offered."""
OFFERED = {name: entry for name, entry in GRAPHS.items() if entry.kind == "offered"}
"""The graphs that a user can ask."""


def graph_named(method: str) -> GraphEntry:
    """Return a graph by its name, in which hyphens may stand for underscores.

    Raises:
        SettingsError: there is none; the message names those that a user can ask.
    """
    entry = GRAPHS.get(method.replace("-", "_"))
    if entry is None:
        raise SettingsError("method", method, f"choose one of {', '.join(OFFERED)}")
    return entry

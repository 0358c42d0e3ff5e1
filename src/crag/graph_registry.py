"""The graphs by name: the one list that commands, servers and experiments read.

A builder is named here and imported when it is used, so that `crag --help` knows the graphs without
loading them.
"""

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.errors import SettingsError

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Checkpointer

    from crag.parts import Parts


class GraphEntry(NamedTuple):
    """One graph: module and function of its builder, what people call it, and one line about it."""

    builder: str
    title: str
    description: str

    def build(
        self, parts: "Parts", *, checkpointer: "Checkpointer" = None
    ) -> "CompiledStateGraph[Any, Any, Any, Any]":
        """Compile the graph."""
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
    ),
    "self_rag": GraphEntry(
        "crag.graph.reflective:build_self_rag", "Critiqued",
        "Self-RAG: the model decides whether to retrieve, and critiques passages, claims and "
        "answer.",
    ),
    "rag": GraphEntry(
        "crag.graph.baseline:build_rag", "Plain retrieval",
        "Plain retrieval without correction, to compare with.",
    ),
}  # fmt: skip
"""The graphs that a user can ask, in the order in which they are offered. `crag.graph` has two more
for programs: `build_knowledge` and `build_no_retrieval`."""


def built(parts: "Parts") -> "dict[str, CompiledStateGraph[Any, Any, Any, Any]]":
    """Return all graphs, built from the same parts."""
    return {name: entry.build(parts) for name, entry in GRAPHS.items()}


def graph_named(method: str) -> GraphEntry:
    """Return a graph by its name, in which hyphens may stand for underscores.

    Raises:
        SettingsError: there is none; the message names those that there are.
    """
    entry = GRAPHS.get(str(method).replace("-", "_"))
    if entry is None:
        raise SettingsError("method", method, f"choose one of {', '.join(GRAPHS)}")
    return entry

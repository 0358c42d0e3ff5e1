"""CRAG with the knowledge texts that its authors published instead of refinement and web.

For each question the files have the text refined from the documents, the text selected from the web
of 2023, and both. The official inference does no more than this: it grades the documents, chooses
one of the three texts by the action, and generates (CRAG, Algorithm 1). A run needs neither a
search service nor the web of 2023.
"""

from typing import Any

from langgraph.graph import END

from crag.correction.provenance import unscored
from crag.graph.opening import Graph, opened_graph
from crag.nodes.generate import Generate
from crag.nodes.grade import Grade
from crag.nodes.retrieve import Retrieve
from crag.papers.bench.current_example import current_example
from crag.parts import Parts
from crag.runtime.node_adapter import as_node
from crag.settings import Settings
from crag.state import Source, State, Strip, StripKind, known_action


def build_crag_published(parts: Parts) -> Graph:
    """Compile open_run → retrieve → grade → look up → generate, by published knowledge."""
    graph = opened_graph("retrieve")
    graph.add_node("retrieve", as_node(Retrieve(parts.retriever)))
    graph.add_node("grade", as_node(Grade(parts.evaluator)))
    graph.add_node("look_up", as_node(LookUp()))
    graph.add_node(
        "generate",
        as_node(Generate(parts.model, parts.quoter, parts.prompts, attributor=parts.attributor)),
    )
    graph.add_edge("retrieve", "grade")
    graph.add_edge("grade", "look_up")
    graph.add_edge("look_up", "generate")
    graph.add_edge("generate", END)
    return graph.compile(name="crag_published")


class LookUp:
    """Use the published text of the chosen action."""

    def run(self, state: State, settings: Settings) -> dict[str, Any]:  # noqa: ARG002 - a node's form
        """Write one kept strip per text; Ambiguous uses the combined text, or the other two.

        A text that the official program reads as empty is an empty strip; one that is not there is
        none.
        """
        known = current_example().knowledge
        internal = _strips(known.get("internal"), "document")
        external = _strips(known.get("external"), "web")
        match known_action(state["action"]):
            case "correct":
                return {"strips": internal}
            case "incorrect":
                return {"strips": external}
            case "ambiguous":
                both = _strips(known.get("combined"), "document")
                return {"strips": both or [*internal, *external]}


def _strips(text: str | None, kind: StripKind) -> list[Strip]:
    source = Source(id="published", title="", url="", position="")
    if text is None:
        return []
    return [{**unscored(text, source, kind), "kept": True, "reason": "published"}]

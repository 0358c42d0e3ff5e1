"""Pass the retrieved documents on as they are, for retrieval without correction."""

from crag.correction.provenance import kept_whole
from crag.nodes.refine import StripsUpdate
from crag.settings import Settings
from crag.state import State, Usage


def pass_through(state: State, settings: Settings) -> StripsUpdate:  # noqa: ARG001 - a node's form
    """Pass on every retrieved document, whole and ungraded."""
    strips = kept_whole(state["documents"], "not graded")
    return StripsUpdate(strips=strips, events=[], usage=Usage())

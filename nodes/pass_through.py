"""Pass the retrieved documents on as they are, for retrieval without correction."""

from crag.correction.provenance import kept_whole
from crag.settings import Settings
from crag.state import State


def pass_through(state: State, settings: Settings) -> State:  # noqa: ARG001 - a node's form
    """Pass on every retrieved document, whole and ungraded."""
    return State(strips=kept_whole(state["documents"], "not graded"))

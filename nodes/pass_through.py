"""Pass the retrieved documents on as they are, for retrieval without correction."""

from crag.correction.provenance import kept_whole
from crag.nodes.refine import InternalUpdate
from crag.settings import Settings
from crag.state import State, Usage


class PassThrough:
    """Pass on every retrieved document, whole and ungraded."""

    def run(self, state: State, settings: Settings) -> InternalUpdate:  # noqa: ARG002 - a node's form
        """Write one kept strip for each document."""
        strips = kept_whole(state["documents"], "not graded")
        return InternalUpdate(internal=strips, events=[], usage=Usage())

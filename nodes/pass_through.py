"""Pass the retrieved documents on as they are, for retrieval without correction."""

from crag.correction.provenance import kept_whole
from crag.nodes.refine import StripsUpdate
from crag.settings import Settings
from crag.state import State, Usage


class PassThrough:
    """Pass on every retrieved document, whole and ungraded."""

    def run(self, state: State, settings: Settings) -> StripsUpdate:  # noqa: ARG002 - a node's form
        """Write one kept strip for each document."""
        strips = kept_whole(state["documents"], "not graded")
        return StripsUpdate(strips=strips, events=[], usage=Usage())

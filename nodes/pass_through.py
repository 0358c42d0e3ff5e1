"""Keep the retrieved documents as they are: what retrieval without correction does."""

from crag.correction.provenance import kept_whole
from crag.nodes.refine import InternalUpdate
from crag.settings import Settings
from crag.state import State, Usage


class PassThrough:
    """Hand every retrieved document on whole, unjudged."""

    def run(self, state: State, settings: Settings) -> InternalUpdate:  # noqa: ARG002 - a node's form
        """Write one kept strip for each document."""
        strips = kept_whole(state["documents"], "not graded")
        return InternalUpdate(internal=strips, events=[], usage=Usage())

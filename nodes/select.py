"""Select external knowledge from what was read on the web."""

from crag.events import event
from crag.parts import Evaluator
from crag.scoring import filter_strips
from crag.settings import Settings
from crag.state import State, Strip, Usage
from crag.updates import ExternalUpdate


class Select:
    """Score all paragraphs in one evaluator call and keep the best (CRAG, Sec. 4.5).

    They are scored against the original question, not the rewritten query, and kept by the same
    rules as the strips of documents.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def run(self, state: State, settings: Settings) -> ExternalUpdate:
        """Write every strip with its score, whether it was kept, and why."""
        strips = state.get("external", [])
        if not strips:
            return _nothing(state)
        if not settings.select:
            kept: list[Strip] = [{**s, "kept": True, "reason": "not selected"} for s in strips]
            return ExternalUpdate(external=kept, events=[], usage=Usage())
        judged, events, usage = filter_strips(
            self._evaluator, state["question"], strips, settings, node="select"
        )
        return ExternalUpdate(external=judged, events=events, usage=usage)


def _nothing(state: State) -> ExternalUpdate:
    """Say so where hits brought no text; a search without hits has said it already."""
    update = ExternalUpdate(external=[], events=[], usage=Usage())
    if state.get("hits"):
        detail = f"the {len(state['hits'])} pages found hold no text, and nor do their snippets"
        fallback = "go on without knowledge from the web"
        update["events"] = [event("search_empty", "select", detail, fallback)]
    return update

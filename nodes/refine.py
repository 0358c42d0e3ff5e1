"""Refine the retrieved documents into internal knowledge."""

from crag.correction.evidence import strips_in_context
from crag.correction.provenance import kept_whole, source_of, strip_of, title_of, unscored
from crag.correction.strips import decompose, with_title
from crag.parts import Evaluator
from crag.runtime.calls import filter_strips
from crag.settings import Settings
from crag.state import State, Strip
from crag.text.units import units_of


def refine(state: State, settings: Settings, evaluator: Evaluator) -> State:
    """Decompose all documents, score their strips, keep the best.

    CRAG, Sec. 4.4 and Algorithm 1: all of the documents are refined, not only the relevant ones,
    and strips are scored against the original question: in one evaluator call, or without any by
    the readings of the documents.
    """
    if not settings.variant.refine:
        return State(strips=kept_whole(state["documents"], "refinement is off"))
    question, documents = state["question"], state["documents"]
    readings = [one.metadata["reading"] for one in documents if "reading" in one.metadata]
    if len(readings) == len(documents) > 0:
        return State(strips=strips_in_context(question, documents, readings, settings))
    strips, events, usage = filter_strips(
        evaluator, question, _strips(state, settings), settings, node="refine"
    )
    return State(strips=strips, events=events, usage=usage)


def _strips(state: State, settings: Settings) -> list[Strip]:
    strips: list[Strip] = []
    for index, document in enumerate(state["documents"]):
        text, source = document.page_content, source_of(document, index)
        if settings.variant.titles == "passage":  # Offsets would not be those of the document.
            parts = decompose(with_title(title_of(document), text))
            strips += [unscored(part, source) for part in parts]
        else:
            strips += [strip_of(document, source, unit) for unit in units_of(text)]
    return strips

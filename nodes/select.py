"""Select external knowledge from what was read on the web."""

from crag.correction.shortlist import shortlist
from crag.correction.strips import with_title
from crag.events import event
from crag.parts import Evaluator
from crag.runtime.calls import filter_strips
from crag.settings import Settings
from crag.state import State, Strip, strips_of_kind

MOST_JUDGED = 20
"""Paragraphs from the web that the evaluator scores: those that share the most words with the
question."""


def select(state: State, settings: Settings, evaluator: Evaluator) -> State:
    """Score all paragraphs in one evaluator call and keep the best (CRAG, Sec. 4.5).

    They are scored against the original question, not the rewritten query, and kept by the same
    rules as strips of documents. If there are very many, only a shortlist by word overlap is
    scored.
    """
    strips = strips_of_kind(state, "web")
    if not strips:
        found = len(state.get("pages", []))  # A search without hits has told of that.
        detail = f"the {found} pages found and their snippets have no text"
        nothing = event("search_empty", "select", detail, "continue without web knowledge")
        return State(strips=[], events=[nothing] if found else [])
    if not settings.variant.select:
        kept: list[Strip] = [{**s, "kept": True, "reason": "not selected"} for s in strips]
        return State(strips=kept)
    texts = [with_title(strip["source"]["title"], strip["text"]) for strip in strips]
    pages = [strip["source"]["id"] for strip in strips]
    question = state["question"]
    best = [strips[at] for at in shortlist(question, texts, MOST_JUDGED, pages)]
    strips, events, usage = filter_strips(evaluator, question, best, settings, node="select")
    return State(strips=strips, events=events, usage=usage)

"""Select external knowledge from what was read on the web."""

from crag.correction.evidence import paragraph_in_context
from crag.correction.shortlist import shortlist
from crag.correction.strips import LOWEST, STRIPS_KEPT, kept_best, with_title
from crag.events import Event, event
from crag.nodes.refine import without_readings
from crag.parts import Evaluator, Passage, is_reading
from crag.runtime.calls import filter_strips, judge_passages
from crag.settings import Settings
from crag.state import State, Strip, Usage, strips_of_kind

MOST_JUDGED = 200
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
    chosen = shortlist(question, texts, MOST_JUDGED, pages)
    judged, events, usage = _judged(evaluator, question, [strips[i] for i in chosen], settings)
    return State(strips=without_readings(judged), events=events, usage=usage)


def _judged(
    evaluator: Evaluator, question: str, strips: list[Strip], settings: Settings
) -> tuple[list[Strip], list[Event], Usage]:
    if settings.profile.benchmark or not is_reading(evaluator):
        return filter_strips(evaluator, question, strips, settings, node="select")
    passages = [Passage(strip["source"]["title"], strip["text"]) for strip in strips]
    _, readings, events, usage = judge_passages(evaluator, question, passages, node="select")
    if readings:
        strips = list(map(paragraph_in_context, strips, readings))
    else:
        strips = [{**strip, "score": LOWEST} for strip in strips]
    kept = kept_best(strips, settings.strips_kept or STRIPS_KEPT, settings.strip_threshold)
    return kept, events, usage

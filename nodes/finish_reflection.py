"""Turn the outcome of reflection into an answer with citations, or an abstention."""

from collections.abc import Sequence
from itertools import chain

from crag.answering.attribution import attribute
from crag.answering.citations import (
    attributed,
    numbered_passages,
    strips_of,
    validate,
    why_empty,
    with_number,
)
from crag.answering.links import without_links
from crag.answering.outcome import (
    FOUND_NOTHING,
    NOT_FOUND,
    AnswerUpdate,
    answer_message,
    declines,
    links_removed,
)
from crag.answering.quoted import quoted_or_abstained
from crag.correction.naming import lacking
from crag.events import Event, EventKind, event
from crag.parts import Attributor, Quoter
from crag.reflection_tokens import IRRELEVANT
from crag.settings import Settings
from crag.state import AnswerSentence, Citation, Critique, Flag, State, Strip, reflected
from crag.text.untrusted import neutral

_NODE = "finish_reflection"
_SHORTENED = "the best answer so far is given"
_UNSUPPORTED = "the model called every candidate unsupported"
_EVENTS: dict[Flag, tuple[EventKind, str, str]] = {
    "model_failed": ("model_failed", "the model failed before the answer was complete", _SHORTENED),
    "depth_limit": ("reflection_limited", "max_depth segments did not end the answer", _SHORTENED),
    "cut": ("reflection_limited", "the text reached max_new_tokens", _SHORTENED),
    "constraint_fallback": ("constraints_waived", _UNSUPPORTED, "the scores decide"),
}


def finish_reflection(
    state: State,
    settings: Settings,
    attributor: Attributor | None = None,
    quoter: Quoter | None = None,
) -> AnswerUpdate:
    """Turn the outcome into the answer, its citations and events.

    Each ``[n]`` cites the strip of a passage that shares most words with the sentence before it.
    Text that the model judged irrelevant or unsupported gets an event instead of a citation. Where
    nothing is sure, which only a back end that quotes says, the outcome is likely. Text
    of a model that says nothing, that it doubts itself, or that no passage supports, gives way to
    what the `quoter` finds in the passages. Tasks without citations keep what was written.
    """
    reflection, question = reflected(state), state["question"]
    told = [_EVENTS[flag] for flag in reflection.get("flags", []) if flag in _EVENTS]
    events = [event(kind, _NODE, detail, fallback) for kind, detail, fallback in told]
    chosen = [critique for critique in reflection.get("critiques", []) if critique["chosen"]]
    if nothing := _why_nothing(state, chosen, settings):
        events.append(event("abstained", _NODE, nothing, "no answer is given"))
        return {**_update(NOT_FOUND, [], events), "outcome": "not_found"}
    answer, citations, links = _cited(state, chosen, settings)
    events += [*links_removed(_NODE, links), *_doubts(state, chosen)]
    update = _update(answer, citations, events)
    if not settings.cites:
        return update
    if chosen and all("unsure" in one["flags"] for one in chosen):
        return {**update, "outcome": "likely"}
    # The passages support what cites nothing, too.
    available, last = [*citations], max((one["number"] for one in citations), default=0)
    for passage in numbered_passages(reflection["passages"]):
        passage["number"] += last
        available.append(passage)
    judged = attribute(question, answer, available, attributor, node=_NODE, add=False)
    update["events"] = events = [*events, *judged.events]
    is_judged = attributor is not None and not judged.events
    sentences = judged.sentences if is_judged else []
    if settings.require_citations and quoter is not None:
        problem = _problem(state, question, answer, chosen, sentences)
        if problem:
            detail = f"{problem}: {reflection['answer']}"
            events.append(event("uncited_answer", _NODE, detail))
            return _quoted(state, quoter, events)
    return {**update, "sentences": judged.sentences}


def _quoted(state: State, quoter: Quoter | None, events: list[Event]) -> AnswerUpdate:
    """Quote the passages as a run without a model does, or abstain."""
    strips: list[Strip] = []
    for strip in chain.from_iterable(map(strips_of, reflected(state)["passages"])):
        told: Strip = {**strip, "text": neutral(strip["text"])}
        strips += [told] if told not in strips else []
    found = quoted_or_abstained(state, quoter, strips, events)
    named = [Event(**{**one, "node": _NODE}) for one in found["events"]]
    update = _update(found["answer"], found["citations"], named)
    return {**update, "outcome": found["outcome"], "messages": found["messages"]}


def _problem(
    state: State,
    question: str,
    answer: str,
    chosen: Sequence[Critique],
    sentences: Sequence[AnswerSentence],
) -> str:
    """Return what is wrong with text that a model wrote about passages; empty if nothing is."""
    if any(one["passage"] is None or one["quoted"] for one in chosen):
        return ""
    if nothing := why_empty(answer):
        return f"the model {nothing}"
    doubted = [_doubted(state, one) for one in chosen]
    if doubted and all(doubted):
        return f"the model called {doubted[0]}"
    unsupported = [one for one in sentences if one["status"] == "unsupported"]
    if 2 * len(unsupported) > len(sentences):
        return "no passage supports most sentences of the model's answer"
    places = dict.fromkeys(one["passage"] for one in chosen if one["passage"] is not None)
    strips = [strip for place in places for strip in strips_of(reflected(state)["passages"][place])]
    missing = lacking(question, strips)
    return f"no passage of the model's answer has {', '.join(missing)}" if missing else ""


def _cited(
    state: State, chosen: Sequence[Critique], settings: Settings
) -> tuple[str, list[Citation], list[str]]:
    """Return the answer with its numbers, their citations, and the links that were removed."""
    reflection = reflected(state)
    answer, places = reflection["answer"], reflection["cited"]
    if settings.form != "long":  # The long form cites nothing doubtful.
        doubted = {critique["passage"] for critique in chosen if critique["doubts"]}
        places = [place for place in places if place not in doubted]
    passages = [reflection["passages"][place] for place in places]
    if not settings.cites:
        citations = numbered_passages(passages)
        answer, links = without_links(answer, citations)
        return answer, citations, links
    if settings.form != "long" and passages:
        answer = with_number(answer, 1)
    answer, citations = attributed(answer, passages)
    checked = validate(answer, citations)
    return checked.answer, citations, checked.links


def _doubted(state: State, critique: Critique) -> str:
    """Return the model's objection to a candidate; empty if there is none."""
    if critique["passage"] is None or not critique["doubts"]:
        return ""
    title = reflected(state)["passages"][critique["passage"]]["title"]
    if IRRELEVANT in critique["doubts"]:
        return f"the passage {title!r} irrelevant"
    return f"its text not supported by {title!r}"


def _doubts(state: State, chosen: Sequence[Critique]) -> list[Event]:
    """Record what the model objects to, and that it wrote without a passage."""
    doubts = [
        event("unsupported_answer", _NODE, f"the model called {doubt}", "no citation")
        for doubt in dict.fromkeys(_doubted(state, one) for one in chosen)
        if doubt
    ]
    if any(critique["passage"] is None for critique in chosen):
        doubts.append(event("own_knowledge", _NODE, "written without a passage"))
    return doubts


def _why_nothing(state: State, chosen: Sequence[Critique], settings: Settings) -> str:
    """Return why there is no answer; empty if there is one."""
    reflection = reflected(state)
    if not reflection.get("answer"):
        left = "nothing that was written answers the question"
        return left if "answer" in reflection else "there is no passage"
    if declines(reflection["answer"]):
        return FOUND_NOTHING
    is_alone = all(critique["passage"] is None for critique in chosen)
    missing = is_alone and "no_passages" in reflection["flags"] and not settings.allow_own_knowledge
    retrieves = [choice["action"] for choice in reflection["choices"][:1]] == ["retrieve"]
    return "there is no passage" if missing and retrieves else ""


def _update(answer: str, citations: list[Citation], events: list[Event]) -> AnswerUpdate:
    return AnswerUpdate(
        answer=answer, outcome="answered", citations=citations, sentences=[],
        messages=[answer_message(answer, citations)], events=events,
    )  # fmt: skip

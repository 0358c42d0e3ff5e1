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
    AnswerUpdate,
    abstained,
    answer_update,
    declines,
    links_removed,
    quoted_or_abstained,
    unsupported,
    why_nothing,
)
from crag.events import EventKind, event
from crag.parts import Attributor, Quoter
from crag.settings import Settings
from crag.state import Citation, Critique, Flag, State, Strip, reflected
from crag.text.untrusted import neutral

_NODE = "finish_reflection"
_SHORTENED = "the best answer so far is given"
_UNSUPPORTED = "the model called every candidate unsupported"
_EVENTS: dict[Flag, tuple[EventKind, str, str]] = {
    "model_failed": ("model_failed", "the model failed before the answer was complete", _SHORTENED),
    "depth_limit": ("reflection_limited", "max_depth segments did not end the answer", _SHORTENED),
    "cut": ("reflection_limited", "the text was cut off, as by max_new_tokens", _SHORTENED),
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
    places = [one["passage"] for one in chosen if one["passage"] is not None]
    if nothing := _why_nothing(state, chosen, settings):
        return abstained(events, nothing, node=_NODE)
    answer, citations, links = _cited(state, chosen, settings)
    doubts = [_doubted(state, one) for one in chosen]
    events += links_removed(_NODE, links)
    events += [
        event("unsupported_answer", _NODE, doubt, "no citation")
        for doubt in dict.fromkeys(filter(None, doubts))
    ]
    if len(places) < len(chosen):
        events.append(event("own_knowledge", _NODE, "written without a passage"))
    if not settings.cites:
        return answer_update(answer, citations, events)
    if chosen and all("unsure" in one["flags"] for one in chosen):
        return answer_update(answer, citations, events, outcome="likely")
    # The passages support what cites nothing, too.
    passages = numbered_passages(reflection["passages"], after=len(citations))
    judged = attribute(question, answer, [*citations, *passages], attributor, node=_NODE, add=False)
    events += judged.events
    is_quoted = not places or len(places) < len(chosen) or any(one["quoted"] for one in chosen)
    if settings.require_citations and quoter is not None and not is_quoted:
        cited = [strip for at in places for strip in strips_of(reflection["passages"][at])]
        problem = unsupported(question, judged, cited)
        if doubts and all(doubts):
            problem = doubts[0]
        if nothing := why_empty(answer):
            problem = f"the model {nothing}"
        if problem:
            whole = chain.from_iterable(map(strips_of, reflection["passages"]))
            strips: list[Strip] = [{**one, "text": neutral(one["text"])} for one in whole]
            strips = [one for at, one in enumerate(strips) if one not in strips[:at]]
            problem = f"{problem}: {reflection['answer']}"
            return quoted_or_abstained(
                state, quoter, strips, events=events, problem=("uncited_answer", problem),
                node=_NODE,
            )  # fmt: skip
    return answer_update(answer, citations, events, sentences=judged.sentences)


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
    """Return the model's objection to a candidate from a passage; empty if there is none."""
    if critique["passage"] is None or not critique["doubts"]:
        return ""
    title = reflected(state)["passages"][critique["passage"]]["title"]
    return f"the model wrote {critique['doubts'][0]} of {title!r}"


def _why_nothing(state: State, chosen: Sequence[Critique], settings: Settings) -> str:
    """Return why there is no answer; empty if there is one."""
    reflection = reflected(state)
    if not reflection.get("answer"):
        if reflection.get("critiques"):
            return "nothing that was written answers the question"
        has_failed = any(one["kind"] == "model_failed" for one in state.get("events", []))
        return "the model failed" if has_failed else why_nothing(state)
    if declines(reflection["answer"]):
        return FOUND_NOTHING
    is_alone = all(critique["passage"] is None for critique in chosen)
    missing = is_alone and "no_passages" in reflection["flags"] and not settings.allow_own_knowledge
    retrieves = [choice["action"] for choice in reflection["choices"][:1]] == ["retrieve"]
    return why_nothing(state) if missing and retrieves else ""

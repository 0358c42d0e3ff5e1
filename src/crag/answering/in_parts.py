"""Answer a question of several parts by quotations: part by part where the whole would lose one."""

from collections.abc import Container, Sequence

from crag.answering.context import numbered
from crag.answering.joining import StripPlace, place_of
from crag.answering.links import without_links
from crag.answering.outcome import (
    MOST_CLOSEST,
    NOT_FOUND,
    UNSURE_OF_PART,
    GenerateUpdate,
    chat_reply,
    from_quotations,
    quoted_text,
)
from crag.events import Event
from crag.parts import Quotation
from crag.state import State, Strip, SubQuestion

Found = Sequence[Quotation]
"""What was quoted for one question, the best first; all of them sure, or none."""


def as_read_for(
    own: Sequence[Strip], strips: Sequence[Strip], external: Container[StripPlace], *, again: bool
) -> dict[int, Strip]:
    """Return those of the kept `strips` that a question keeps, by index, as they were read for it.

    `own` are the strips of its documents. Those from the web were read for the whole question; for
    a part they come without their reading, to be read `again`.
    """
    kept = {place_of(strip): strip for strip in own if strip["kept"]}
    read: dict[int, Strip] = {}
    for index, strip in enumerate(strips):
        if (place := place_of(strip)) in kept:
            read[index] = kept[place]
        elif place in external:
            read[index] = {**strip}
            if again:
                read[index].pop("reading", None)
    return read


def loses_a_part(whole: Found, by_part: Sequence[Found]) -> bool:
    """Return whether what is shown for the whole question leaves a part of it without an answer."""
    answered = [found[0] for found in by_part if _is_sure(found)]
    if not _is_sure(whole):
        return any(by_part)
    shown = [quoted for quoted in whole if not quoted.further]
    return bool(answered) and not (
        len(answered) == len(by_part) and all(_repeats(lead, shown) for lead in answered)
    )


def from_parts(
    state: State,
    whole: Found,
    by_part: Sequence[Found],
    strips: Sequence[Strip],
    events: list[Event],
) -> GenerateUpdate:
    """Lead with the best quotation of each part, in the order of the parts.

    If one part is answered, so is the question, and the others are named, each with its closest
    passage. If none is, the closest passages are those of the parts.
    """
    leads = [found[0] for found in by_part if found]
    answered = [found for found in by_part if _is_sure(found)]
    if not answered:
        closest = _distinct([*leads, *whole])[: max(MOST_CLOSEST, len(leads))]
        return _with_parts(from_quotations(state, closest, strips, events), state, by_part)
    shown = _distinct(leads)
    further = _distinct([*shown, *(one for found in answered for one in found[1:])])[len(shown) :]
    quotations = [
        *(quoted._replace(sure=True, further=False) for quoted in shown),
        *(quoted._replace(further=True) for quoted in further),
    ]
    update = from_quotations(state, quotations, strips, events)
    if len(answered) < len(by_part):
        told = map(_told, state["sub_questions"], by_part)
        update["answer"], _ = without_links("\n\n".join(told), numbered(strips))
        update["messages"] = chat_reply(state, update["answer"], update["citations"])
    return _with_parts(update, state, by_part)


def _is_sure(found: Found) -> bool:
    return bool(found) and found[0].sure


def _told(part: SubQuestion, found: Found) -> str:
    """Quote what answers a part, or name the part that nothing surely answers."""
    if not found:
        return f"{part['question']} {NOT_FOUND}"
    quoted = quoted_text(found[:1])
    if found[0].sure:
        return quoted
    return f"{part['question']} {UNSURE_OF_PART}\n\n{quoted}"


def _with_parts(update: GenerateUpdate, state: State, by_part: Sequence[Found]) -> GenerateUpdate:
    """Add what was said of each part, with its citations among those of the answer.

    What was read for it is not needed any more.
    """
    update["sub_questions"] = []
    for part, found in zip(state["sub_questions"], by_part, strict=True):
        cited = [
            one for one in update["citations"] if found and one["number"] == found[0].strip + 1
        ]
        told: SubQuestion = {
            **part,
            "answer": _told(part, found),
            "abstained": not _is_sure(found),
            "citations": cited,
        }
        told.pop("readings", None)
        update["sub_questions"].append(told)
    return update


def _distinct(quotations: Sequence[Quotation]) -> list[Quotation]:
    """Leave out what repeats an earlier quotation of its strip, or a part of one."""
    distinct: list[Quotation] = []
    for quoted in quotations:
        if not _repeats(quoted, distinct):
            distinct.append(quoted)
    return distinct


def _repeats(quoted: Quotation, others: Sequence[Quotation]) -> bool:
    return any(quoted.strip == other.strip and quoted.text in other.text for other in others)

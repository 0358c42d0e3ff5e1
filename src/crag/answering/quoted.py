"""Answer from strips without a language model: quote what answers, or is likely to, or abstain."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, HumanMessage

from crag.answering.model_calls import Reply
from crag.answering.outcome import AnswerUpdate, abstained, from_quotations
from crag.answering.quoting import MOST_LIKELY
from crag.correction.naming import about
from crag.correction.strips import score_of
from crag.events import Event, EventKind, event
from crag.parts import Quotation, Quoter
from crag.runtime.attempt import Attempt
from crag.settings import Settings
from crag.state import State, Strip, spoken
from crag.text.units import parts_of
from crag.text.words import bare, names_lacking
from crag.wording import with_subject

WITH_SUBJECT = "complete it by the question that it follows"
"""The fallback of an event after which a rule has completed the question."""


def quoted_or_abstained(  # noqa: PLR0913 - what to quote, and why
    state: State,
    quoter: Quoter | None,
    strips: Sequence[Strip],
    *,
    events: Sequence[Event] = (),
    problem: tuple[EventKind, object] | None = None,
    reply: Reply | None = None,
    node: str = "generate",
) -> AnswerUpdate:
    """Quote the strips, or abstain; a `problem` of the model is the kind and detail of its event.

    Where the documents hold the answer, since the action is Correct, the best strip is quoted if
    nothing else is: nothing found would deny it.
    """
    quotations, events = list[Quotation](), [*events]
    with Attempt("quoter") as attempt:
        if quoter is not None and strips:
            quotations = quoter.quote(state["question"], strips)
    if attempt.error is None and not quotations and strips and state.get("action") == "correct":
        quotations = [_best_of(strips)]
    is_sure = bool(quotations) and _answers(state, quotations[0], strips)
    if problem is not None:
        kind, detail = problem
        is_sure = is_sure and (kind != "model_declined" or quotations[0].span is not None)
        events.append(event(kind, node, detail, "quote the strips" if quotations else "abstain"))
    if attempt.error is not None:
        events.append(event("evaluator_failed", node, attempt.error, "nothing is quoted"))
    if not quotations:
        return abstained(events, why_nothing(state, strips), reply, node)
    shown = [one._replace(sure=is_sure) for one in quotations]
    return from_quotations(shown if is_sure else shown[:MOST_LIKELY], strips, events, reply, node)


def _answers(state: State, best: Quotation, strips: Sequence[Strip]) -> bool:
    """Say whether the best quotation is the answer; otherwise it is likely to be.

    It is if it is sure, or holds a span of its own where the action is Correct, and is not about
    another thing of the kind that the question names.
    """
    strip = strips[best.strip]
    is_sure = best.sure or (state.get("action") == "correct" and best.span is not None)
    named = "\n".join([best.text, best.lead, about(strip)])
    return (
        is_sure
        and not names_lacking(state["question"], named)
        and not _repeats_an_answer(state, best)
    )


def _best_of(strips: Sequence[Strip]) -> Quotation:
    """Return the strip with the highest score, as it is read; one with words of its own first."""
    named = [all(part.kind == "heading" for part in parts_of(one["text"])) for one in strips]
    best = max(range(len(strips)), key=lambda at: (not named[at], score_of(strips[at])))
    text, score = strips[best]["text"], score_of(strips[best])
    return Quotation(text.strip(), best, score, place=(0, len(text)), sure=False)


def why_nothing(state: State, strips: Sequence[Strip] = ()) -> str:
    """Return why there is no answer, where no model wrote one."""
    if strips:
        return "nothing in the strips that were kept answers the question"
    action = state.get("action")
    return f"no knowledge was left after the action {action}" if action else "there is no knowledge"


def completed(asked: str, state: State, settings: Settings) -> str:
    """Return a follow-up completed by the question before, where it leans on that, by a rule."""
    earlier = [one.text for one in spoken(state)[:-1] if isinstance(one, HumanMessage)]
    question = with_subject(asked, earlier)
    return question if len(question) <= settings.max_question_characters else asked


def _repeats_an_answer(state: State, quotation: Quotation) -> bool:
    """Say whether a quotation answered the question before: it is no sure answer to the next."""
    if not any(entry["fallback"] == WITH_SUBJECT for entry in state.get("events", [])):
        return False
    quoted = bare(quotation.text)  # An answer escapes what would be markup in what it quotes.
    answers = (one.text for one in state.get("messages", []) if isinstance(one, AIMessage))
    return any(quoted in bare(text) for text in answers)

"""Answer from strips without a language model: quote what answers, or is likely to, or abstain."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, HumanMessage

from crag.answering.model_calls import Reply
from crag.answering.outcome import GenerateUpdate, abstained, from_quotations
from crag.answering.quoting import MOST_LIKELY
from crag.correction.naming import about
from crag.correction.strips import score_of
from crag.errors import ModelProblem
from crag.events import Event, EventKind, event
from crag.parts import Quotation, Quoter
from crag.runtime.attempt import Attempt
from crag.settings import Settings
from crag.state import State, Strip, spoken
from crag.text.units import parts_of
from crag.text.words import bare, names_lacking, question_words, words
from crag.wording import named_instead, with_subject

WITH_SUBJECT = "complete it by the question that it follows"
"""The fallback of an event after which a rule has completed the question."""
_KINDS: dict[ModelProblem, EventKind] = {
    "refused": "model_refused",
    "empty": "model_empty",
    "wordless": "wordless_answer",
}


def quoted_or_abstained(
    state: State,
    quoter: Quoter | None,
    strips: list[Strip],
    events: Sequence[Event] = (),
    reply: Reply | None = None,
) -> GenerateUpdate:
    """Quote the strips, or abstain; `events` are those before, and say by then what was done."""
    quotations, failures = quotations_of(state, quoter, strips)
    fallback = "quote the strips" if quotations else "abstain"
    told = [
        Event(**{**one, "fallback": fallback}) if one["kind"] == "uncited_answer" else one
        for one in events
    ]
    if reply is not None and reply.problem is not None:
        kind = _KINDS.get(reply.problem, "model_failed")
        told.append(event(kind, "generate", reply.detail, fallback))
    told += failures
    if quotations:
        update = from_quotations(quotations, strips, told)
    else:
        update = abstained(told, _why_nothing(state, strips))
    if reply is not None:
        update["usage"] = reply.usage
    return update


def quotations_of(
    state: State, quoter: Quoter | None, strips: list[Strip]
) -> tuple[list[Quotation], list[Event]]:
    """Return what to quote, and an event if the quoter failed.

    Where the documents hold the answer, since the action is Correct, the best strip is quoted if
    nothing else is: nothing found would deny it.
    """
    quotations: list[Quotation] = []
    with Attempt("quoter") as attempt:
        if quoter is not None and strips:
            quotations = quoter.quote(state["question"], strips)
    if attempt.error is not None:
        return [], [event("evaluator_failed", "generate", attempt.error, "nothing is quoted")]
    if not quotations and strips and state.get("action") == "correct":
        return [_best_of(strips)], []
    if quotations and not _answers(state, quotations[0], strips):
        return likely(quotations), []
    return [one._replace(sure=True) for one in quotations], []


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
        and not _may_repeat_an_answer(state, best, strip)
    )


def likely(quotations: Sequence[Quotation]) -> list[Quotation]:
    """Return those that are shown, all at once, where none is sure."""
    return [one._replace(sure=False) for one in quotations[:MOST_LIKELY]]


def _best_of(strips: Sequence[Strip]) -> Quotation:
    """Return the strip with the highest score, as it is read; one with words of its own first."""
    named = [all(part.kind == "heading" for part in parts_of(one["text"])) for one in strips]
    best = max(range(len(strips)), key=lambda at: (not named[at], score_of(strips[at])))
    text, score = strips[best]["text"], score_of(strips[best])
    return Quotation(text.strip(), best, score, place=(0, len(text)), sure=False)


def _why_nothing(state: State, strips: Sequence[Strip]) -> str:
    if strips:
        return "nothing in the strips that were kept answers the question"
    action = state.get("action")
    return f"no knowledge was left after the action {action}" if action else "there is no knowledge"


def completed(asked: str, state: State, settings: Settings) -> str:
    """Return a follow-up completed by the question before, where it leans on that, by a rule."""
    question = with_subject(asked, _earlier(state))
    return question if len(question) <= settings.max_question_characters else asked


def _may_repeat_an_answer(state: State, quotation: Quotation, strip: Strip) -> bool:
    """Say whether a quotation may answer the question before, and not a completed follow-up.

    It does if it was quoted before, or has no word that a follow-up such as "and in Rome?" adds.
    """
    if not any(entry["fallback"] == WITH_SUBJECT for entry in state.get("events", [])):
        return False
    quoted = bare(quotation.text)  # An answer escapes what would be markup in what it quotes.
    answers = (one.text for one in state.get("messages", []) if isinstance(one, AIMessage))
    if any(quoted in bare(text) for text in answers):
        return True
    named = named_instead(state["asked"])
    added = {*question_words(named)} - {*words(" ".join(_earlier(state)))} if named else set()
    added &= {*words(state["question"])}  # Others had a typing error.
    return bool(added) and added.isdisjoint(words(f"{strip['text']} {about(strip)}"))


def _earlier(state: State) -> list[str]:
    return [one.text for one in spoken(state)[:-1] if isinstance(one, HumanMessage)]

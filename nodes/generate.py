"""Generate the answer from the knowledge that was kept."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase

from crag.answering.context import fenced, kept_strips, paper_format
from crag.answering.emptiness import why_empty
from crag.answering.model_calls import Reply, aask
from crag.answering.outcome import (
    FOUND_NOTHING,
    NOT_FOUND,
    GenerateUpdate,
    abstained,
    declines,
    from_quotations,
    from_reply,
    is_uncited,
)
from crag.correction.action import branches
from crag.correction.naming import about
from crag.correction.strips import score_of
from crag.errors import ModelProblem
from crag.events import Event, EventKind, event
from crag.nodes.contextualize import WITH_SUBJECT, completed
from crag.parts import Attributor, ChatModel, Quotation, Quoter
from crag.prompts import PACKAGED, Prompts
from crag.runtime.attempt import Attempt
from crag.runtime.replies import quotations_of
from crag.runtime.waiting import compute
from crag.settings import Settings
from crag.state import State, Strip, add_usage
from crag.text.units import parts_of
from crag.text.untrusted import neutral
from crag.text.words import bare, names_lacking, question_words, words
from crag.wording import named_instead

_DOUBTFUL = 1 / 6
"""Share of the way from the lower threshold to the upper one that the best strip must have gone for
a model to be asked as usual. On the documentation questions, a model of 1.5 billion weights asked
as usual made up three answers between the lower threshold and there, and gave one right one."""
MOST_LIKELY = 2
"""The most passages that are shown where none is sure to answer."""
_KINDS: dict[ModelProblem, EventKind] = {
    "refused": "model_refused",
    "empty": "model_empty",
    "wordless": "wordless_answer",
}
_GIVING_WAY: set[EventKind] = {"budget_exhausted", "uncited_answer"}
"""Events of a plan after which no text of a model is shown, whatever is quoted instead."""


@dataclass(frozen=True)
class Generate:
    """Answer the original question with one model call, or by quoting, or abstain.

    Without knowledge the model is asked only where its own knowledge is allowed. One whose answer
    says nothing, such as citations without a word or the question again, is asked once more,
    without the demand for citations, if the budget has a call left. A model that fails, refuses or
    says nothing gives way to quotations, and those to an abstention. One that finds no answer gives
    way to a quotation that is sure to be it.
    """

    model: ChatModel | None
    quoter: Quoter | None
    prompts: Prompts = PACKAGED
    _: KW_ONLY
    attributor: Attributor | None = None
    own_knowledge: bool = False

    async def run(self, state: State, settings: Settings) -> GenerateUpdate:
        """Write the answer with its citations, or an abstention."""
        plan = self._plan(state, settings)
        reply = None if plan.call is None else await aask(*plan.call)
        again = self._second_call(state, settings, plan, reply)
        second = None if again is None else await aask(*again)
        return await compute(self._conclude, state, settings, plan, reply, second)

    def _plan(self, state: State, settings: Settings) -> "_Plan":
        strips = kept_strips(state, settings)
        question = state["question"]
        own_knowledge = self.own_knowledge or settings.allow_own_knowledge
        if self.model is None or not (strips or own_knowledge):
            return _Plan(question, strips, "", None, [], cites=False)
        if settings.calls_left(state) <= 0:
            detail = f"max_llm_calls is {settings.max_llm_calls}, so no model writes the answer"
            events = [event("budget_exhausted", "generate", detail)]
            return _Plan(question, strips, "", None, events, cites=False)
        knowledge = fenced(strips) if settings.cites else paper_format(state, settings)
        name = self._wording(state, settings, strips)
        messages = _prompt(self.prompts, name, state, knowledge, settings)
        call = (_limited(self.model, settings), messages)
        return _Plan(question, strips, knowledge, call, [], cites=settings.cites)

    def _wording(self, state: State, settings: Settings, strips: Sequence[Strip]) -> str:
        """Return the prompt that asks for the answer, by what the evaluator says of the knowledge.

        Where the action is Correct, a small model that may decline still does, and one that is to
        write numbers writes little else: so it may not, and attribution finds the numbers. Whoever
        replaced the prompt for all answers is asked with no other.
        """
        profile, prompts = settings.profile, self.prompts
        if not strips:
            return profile.own_prompt
        if profile.doubtful_prompt and _is_doubtful(state, strips, settings):
            return profile.doubtful_prompt
        name = profile.correct_prompt
        usable = name and self.attributor is not None and state.get("action") == "correct"
        if usable and (prompts.replaces(name) or not prompts.replaces(profile.answer_prompt)):
            return name
        return profile.answer_prompt

    def _second_call(
        self, state: State, settings: Settings, plan: "_Plan", reply: Reply | None
    ) -> "_Call | None":
        """Return what to ask after a reply that says nothing; None if nothing is to be asked.

        The demand for numbers is what makes a small model write nothing else.
        """
        says_nothing = bool(plan.strips and plan.why_empty(reply))
        if plan.call is None or not says_nothing or settings.calls_left(state) <= 1:
            return None
        question = neutral(plan.question)
        values = {"question": question, "knowledge": plan.knowledge, "not_found": NOT_FOUND}
        return plan.call[0], self.prompts.render("answer_words", **values)

    def _conclude(
        self,
        state: State,
        settings: Settings,
        plan: "_Plan",
        reply: Reply | None,
        second: Reply | None,
    ) -> GenerateUpdate:
        if reply is not None and plan.why_empty(reply):
            plan, reply = _with_words(plan, reply, second)
        if reply is not None and reply.problem is None:
            if plan.strips and declines(reply.text):
                return self._declined(state, settings, plan, reply)
            update = from_reply(
                reply,
                plan.strips,
                question=plan.question,
                cites=plan.cites,
                attributor=self.attributor,
            )
            events = [*plan.events, *update["events"]]
            if plan.cites and settings.require_citations and is_uncited(update):
                return self._without_reply(state, settings, plan._replace(events=events), reply)
            if not plan.strips:
                detail = "no knowledge was left: the answer rests on the model alone"
                events.append(event("own_knowledge", "generate", detail))
            return {**update, "events": events}
        return self._without_reply(state, settings, plan, reply)

    def quote(
        self, state: State, settings: Settings, strips: list[Strip], events: list[Event]
    ) -> GenerateUpdate:
        """Answer from the strips without a model: by quoting, or abstain."""
        question = settings.profile.posed(state)["question"]
        plan = _Plan(question, strips, "", None, events, cites=False)
        return self._without_reply(state, settings, plan, None)

    def _without_reply(
        self, state: State, settings: Settings, plan: "_Plan", reply: Reply | None
    ) -> GenerateUpdate:
        quotations, quoting = self._quote(state, settings, plan.question, plan.strips)
        fallback = "quote the strips" if quotations else "abstain"
        events = [
            Event(**{**one, "fallback": fallback}) if one["kind"] in _GIVING_WAY else one
            for one in plan.events
        ]
        if reply is not None and reply.problem is not None:
            kind = _KINDS.get(reply.problem, "model_failed")
            events.append(event(kind, "generate", reply.detail, fallback))
        events += quoting
        if quotations:
            update = from_quotations(quotations, plan.strips, events)
        else:
            update = abstained(events, _why_nothing(state, plan.strips))
        if reply is not None:
            update["usage"] = reply.usage
        return update

    def _declined(
        self, state: State, settings: Settings, plan: "_Plan", reply: Reply
    ) -> GenerateUpdate:
        """Quote what answers, or is likely to, in the place of a model that found no answer."""
        quotations, quoting = self._quote(state, settings, plan.question, plan.strips)
        events = [*plan.events, *quoting]
        if not quotations:
            return abstained(events, FOUND_NOTHING, reply)
        events.append(event("model_declined", "generate", FOUND_NOTHING, "quote the strips"))
        if not (plan.cites and quotations[0].sure and quotations[0].span is not None):
            quotations = _likely(quotations)
        return from_quotations(quotations, plan.strips, events, reply)

    def _quote(
        self, state: State, settings: Settings, question: str, strips: list[Strip]
    ) -> tuple[list[Quotation], list[Event]]:
        quotations: list[Quotation] = []
        if self.quoter is not None and strips:
            with Attempt("quoter") as attempt:
                reply = self.quoter.quote(question, deepcopy(strips))
                quotations = quotations_of(reply, strips)
            if attempt.error is not None:
                failed = event("evaluator_failed", "generate", attempt.error, "nothing is quoted")
                return [], [failed]
        if settings.quote_threshold is not None and quotations:
            is_sure = quotations[0].score >= settings.quote_threshold
            quotations = [one._replace(sure=is_sure) for one in quotations]
            quotations = quotations if is_sure else _likely(quotations)
        action = state.get("action")
        if not quotations and strips and action and branches(action) == ["refine"]:
            # Correct says that the documents hold the answer; nothing found would deny it.
            quotations = [best_of(strips)]
        if quotations and names_lacking(question, _with_subject(quotations[0], strips)):
            quotations = _likely(quotations)  # It may be about another of its kind.
        if quotations and _is_completed_by_rule(state):
            is_named = _names_what_was_added(state, settings, strips[quotations[0].strip])
            if _is_said(state, quotations[0]) or not is_named:
                quotations = _likely(quotations)
        return quotations, []


_Call = tuple[ChatModel, list[AnyMessage]]


class _Plan(NamedTuple):
    """What generation is about to do; `call` is None when no model is to be asked."""

    question: str
    strips: list[Strip]
    knowledge: str
    call: _Call | None
    events: list[Event]
    cites: bool
    """Whether the answer is to cite strips, if there are any."""

    def why_empty(self, reply: Reply | None) -> str:
        """Return what is wrong with the reply of a model that was to cite and said nothing."""
        is_answer = self.cites and reply is not None and reply.problem is None
        return why_empty(self.question, reply.text) if is_answer and reply else ""


def _with_words(plan: _Plan, reply: Reply, second: Reply | None) -> tuple[_Plan, Reply]:
    """Put the second reply in the place of one that says nothing."""
    detail = f"the model {plan.why_empty(reply)}: {reply.text}"
    if second is None:
        if plan.strips:
            detail = f"{detail}; max_llm_calls leaves no call to ask it again"
        return plan, reply._replace(problem="wordless", detail=detail)
    second = second._replace(usage=add_usage(reply.usage, second.usage))
    if plan.why_empty(second):
        detail = f"{detail}; asked again without the demand for numbers: {second.text}"
        return plan, second._replace(problem="wordless", detail=detail)
    asked = event("wordless_answer", "generate", detail, "ask again without the demand for numbers")
    return plan._replace(events=[*plan.events, asked]), second


def _names_what_was_added(state: State, settings: Settings, strip: Strip) -> bool:
    """Say whether a passage has a word that a follow-up such as "and in Rome?" adds.

    Behind the question before, that is easily overlooked, and the earlier answer given again. In
    the question as it was read, the words have no typing errors.
    """
    named = named_instead(state["asked"])
    bare_question = settings.profile.split_apart(state["asked"])["question"]
    whole = completed(bare_question, state, settings)
    added = {*question_words(named)} - {*words(whole.rpartition(named)[0])} if named else set()
    typed, read = list(words(whole)), list(words(state["question"]))
    if len(typed) == len(read):
        meant = dict(zip(typed, read, strict=True))
        added = {meant.get(word, word) for word in added}
    return not added or not added.isdisjoint(words(f"{strip['text']} {about(strip)}"))


def _is_said(state: State, quotation: Quotation) -> bool:
    """Say whether an earlier answer of the chat quoted the same, which another question gets."""
    said = (one.text for one in state.get("messages", []) if isinstance(one, AIMessage))
    quoted = bare(quotation.text)  # An answer escapes what would be markup in what it quotes.
    return any(quoted in bare(text) for text in said)


def _is_completed_by_rule(state: State) -> bool:
    """Say whether the question is a follow-up that was completed without a model."""
    return any(entry["fallback"] == WITH_SUBJECT for entry in state.get("events", []))


def _with_subject(quotation: Quotation, strips: Sequence[Strip]) -> str:
    return "\n".join([quotation.text, quotation.lead, about(strips[quotation.strip])])


def _likely(quotations: list[Quotation]) -> list[Quotation]:
    """Return those that are shown, all at once, where none is sure."""
    return [one._replace(sure=False, further=False) for one in quotations[:MOST_LIKELY]]


def best_of(strips: list[Strip]) -> Quotation:
    """Return the strip with the highest score, as it is read; one with words of its own first."""
    named = [all(part.kind == "heading" for part in parts_of(one["text"])) for one in strips]
    best = max(range(len(strips)), key=lambda at: (not named[at], score_of(strips[at])))
    text, score = strips[best]["text"], score_of(strips[best])
    return Quotation(text.strip(), best, score, place=(0, len(text)), sure=False)


def _prompt(
    prompts: Prompts, name: str, state: State, knowledge: str, settings: Settings
) -> list[AnyMessage]:
    profile = settings.profile
    posed = profile.posed(state)
    asked = state.get("asked") or state["question"]
    is_whole = not posed["options"] and profile.split_apart(asked)["question"] == posed["question"]
    question = asked if is_whole else posed["question"]  # Read otherwise: a follow-up, a typo.
    values = {
        "question": neutral(question) if settings.cites else question,
        **profile.values(posed["options"]),
    }
    return prompts.render(name, **values, knowledge=knowledge, not_found=NOT_FOUND)


def _is_doubtful(state: State, strips: Sequence[Strip], settings: Settings) -> bool:
    """Say whether strips were scored, and none is well above what makes a document incorrect."""
    scores = [strip["score"] for strip in strips if strip["score"] is not None]
    thresholds = state.get("thresholds")
    if not (settings.doubt and scores and thresholds):
        return False
    lower, upper = thresholds["lower"], thresholds["upper"]
    return max(scores) < lower + _DOUBTFUL * (upper - lower)


def _limited(model: ChatModel, settings: Settings) -> ChatModel:
    if settings.max_answer_tokens is None or not _is_chat(model):
        return model
    return model.bind(max_tokens=settings.max_answer_tokens)


def _is_chat(model: Runnable[Any, Any]) -> bool:
    """Say whether a chat model gets what is bound, as within `with_retry` or `with_fallbacks`."""
    if isinstance(model, RunnableBindingBase):
        return _is_chat(model.bound)
    if isinstance(model, RunnableWithFallbacks):
        return all(map(_is_chat, model.runnables))
    return isinstance(model, BaseChatModel)


def _why_nothing(state: State, strips: list[Strip]) -> str:
    if strips:
        return "nothing in the strips that were kept answers the question"
    action = state.get("action")
    return f"no knowledge was left after the action {action}" if action else "there is no knowledge"

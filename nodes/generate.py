"""Generate the answer from the knowledge that was kept."""

import asyncio
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase

from crag.answering.citations import why_empty
from crag.answering.context import fenced, kept_strips, paper_format
from crag.answering.model_calls import Reply, aask, ask
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
from crag.answering.quoted import likely, quotations_of, quoted_or_abstained
from crag.events import Event, event
from crag.parts import Attributor, ChatModel, Parts, Quoter
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import State, Strip, add_usage
from crag.text.untrusted import neutral

_DOUBTFUL = 1 / 6
"""Share of the way from the lower threshold to the upper one that the best strip must have gone for
a model to be asked as usual. On the documentation questions, a model of 1.5 billion weights asked
as usual made up three answers between the lower threshold and there, and gave one right one."""


class _Plan(NamedTuple):
    """What the model is asked, if it is asked at all."""

    strips: list[Strip]
    knowledge: str = ""
    messages: list[AnyMessage] | None = None
    events: Sequence[Event] = ()


@dataclass(frozen=True)
class Generate:
    """Answer the question with one model call, or by quoting, or abstain.

    Without knowledge the model is asked only where its own knowledge is allowed. One whose answer
    says nothing, such as citations without a word, is asked once more,
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

    @classmethod
    def of(cls, parts: Parts, *, own_knowledge: bool = False) -> Self:
        """Return the node with the parts of a graph."""
        model, quoter, prompts = parts.model, parts.quoter, parts.prompts
        return cls(model, quoter, prompts, attributor=parts.attributor, own_knowledge=own_knowledge)

    def run(self, state: State, settings: Settings) -> GenerateUpdate:
        """Write the answer with its citations, or an abstention."""
        plan, model = self._plan(state, settings), _limited(self.model, settings)
        if model is None or plan.messages is None:
            return self._conclude(state, settings, plan, None, None)
        reply = ask(model, plan.messages)
        again = self._second_question(state, settings, plan, reply)
        second = ask(model, again) if again else None
        return self._conclude(state, settings, plan, reply, second)

    async def arun(self, state: State, settings: Settings) -> GenerateUpdate:
        """Do the same, awaiting the model."""
        plan, model = self._plan(state, settings), _limited(self.model, settings)
        reply = second = None
        if model is not None and plan.messages is not None:
            reply = await aask(model, plan.messages)
            again = self._second_question(state, settings, plan, reply)
            second = await aask(model, again) if again else None
        return await asyncio.to_thread(self._conclude, state, settings, plan, reply, second)

    def _plan(self, state: State, settings: Settings) -> _Plan:
        strips = kept_strips(state)
        if self.model is None or not (strips or self.own_knowledge or settings.allow_own_knowledge):
            return _Plan(strips)
        if settings.calls_left(state) <= 0:
            detail = f"max_llm_calls is {settings.max_llm_calls}, so no model writes the answer"
            return _Plan(strips, events=[event("budget_exhausted", "generate", detail)])
        knowledge = fenced(strips) if settings.cites else paper_format(state)
        values = _values(state, settings) | {"knowledge": knowledge, "not_found": NOT_FOUND}
        messages = self.prompts.render(self._wording(state, settings, strips), **values)
        return _Plan(strips, knowledge, messages)

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

    def _second_question(
        self, state: State, settings: Settings, plan: _Plan, reply: Reply
    ) -> list[AnyMessage] | None:
        """Return what to ask after a reply that says nothing; None if nothing is to be asked.

        The demand for numbers is what makes a small model write nothing else.
        """
        says_nothing = plan.strips and _why_empty(settings, reply)
        if not says_nothing or settings.calls_left(state) <= 1:
            return None
        question = neutral(state["question"])
        values = {"question": question, "knowledge": plan.knowledge, "not_found": NOT_FOUND}
        return self.prompts.render("answer_words", **values)

    def _conclude(
        self,
        state: State,
        settings: Settings,
        plan: _Plan,
        reply: Reply | None,
        second: Reply | None,
    ) -> GenerateUpdate:
        events = [*plan.events]
        if reply is not None and (nothing := _why_empty(settings, reply)):
            detail = f"the model {nothing}: {reply.text}"
            if second is None and plan.strips:
                detail += "; max_llm_calls leaves no call to ask it again"
            reply, repeated = _with_words(settings, reply, second, detail)
            events += repeated
        if reply is None or reply.problem is not None:
            return quoted_or_abstained(state, settings, self.quoter, plan.strips, events, reply)
        if plan.strips and declines(reply.text):
            return self._declined(state, settings, plan, events, reply)
        update = from_reply(
            reply, plan.strips, question=state["question"], cites=settings.cites,
            attributor=self.attributor,
        )  # fmt: skip
        events += update["events"]
        if settings.cites and settings.require_citations and is_uncited(update):
            return quoted_or_abstained(state, settings, self.quoter, plan.strips, events, reply)
        if not plan.strips:
            detail = "no knowledge was left: the answer rests on the model alone"
            events.append(event("own_knowledge", "generate", detail))
        return {**update, "events": events}

    def _declined(
        self, state: State, settings: Settings, plan: _Plan, events: list[Event], reply: Reply
    ) -> GenerateUpdate:
        """Quote what answers, or is likely to, in the place of a model that found no answer."""
        quotations, failures = quotations_of(state, settings, self.quoter, plan.strips)
        events += failures
        if not quotations:
            return abstained(events, FOUND_NOTHING, reply)
        events.append(event("model_declined", "generate", FOUND_NOTHING, "quote the strips"))
        best = quotations[0]
        if not (settings.cites and best.sure and best.span is not None):
            quotations = likely(quotations)
        return from_quotations(quotations, plan.strips, events, reply)


def _why_empty(settings: Settings, reply: Reply) -> str:
    """Return what is wrong with the reply of a model that was to cite and said nothing."""
    is_answer = settings.cites and reply.problem is None
    return why_empty(reply.text) if is_answer else ""


def _with_words(
    settings: Settings, reply: Reply, second: Reply | None, detail: str
) -> tuple[Reply, list[Event]]:
    """Put the second reply in the place of one that says nothing, for the reason in `detail`."""
    if second is None:
        return reply._replace(problem="wordless", detail=detail), []
    second = second._replace(usage=add_usage(reply.usage, second.usage))
    if _why_empty(settings, second):
        detail = f"{detail}; asked again without the demand for numbers: {second.text}"
        return second._replace(problem="wordless", detail=detail), []
    again = "ask again without the demand for numbers"
    return second, [event("wordless_answer", "generate", detail, again)]


def _values(state: State, settings: Settings) -> dict[str, str]:
    """Return the question as the model reads it, with its options.

    It is the whole of what was asked, unless the question was read otherwise: a follow-up, a typo.
    """
    profile, posed = settings.profile, settings.profile.posed(state)
    asked = state.get("asked") or state["question"]
    is_whole = not posed["options"] and profile.split_apart(asked)["question"] == posed["question"]
    question = asked if is_whole else posed["question"]
    return {
        "question": neutral(question) if settings.cites else question,
        **profile.values(posed["options"]),
    }


def _is_doubtful(state: State, strips: Sequence[Strip], settings: Settings) -> bool:
    """Say whether strips were scored, and none is well above what makes a document incorrect."""
    scores = [strip["score"] for strip in strips if strip["score"] is not None]
    thresholds = state.get("thresholds")
    if not (settings.doubt and scores and thresholds):
        return False
    lower, upper = thresholds["lower"], thresholds["upper"]
    return max(scores) < lower + _DOUBTFUL * (upper - lower)


def _limited(model: ChatModel | None, settings: Settings) -> ChatModel | None:
    if model is None or settings.max_answer_tokens is None or not _is_chat(model):
        return model
    return model.bind(max_tokens=settings.max_answer_tokens)


def _is_chat(model: Runnable[Any, Any]) -> bool:
    """Say whether a chat model gets what is bound, as within `with_retry` or `with_fallbacks`."""
    match model:
        case RunnableBindingBase():
            return _is_chat(model.bound)
        case RunnableWithFallbacks():
            return all(map(_is_chat, model.runnables))
        case _:
            return isinstance(model, BaseChatModel)

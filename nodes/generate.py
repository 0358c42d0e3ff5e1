"""Generate the answer from the knowledge that was kept."""

import asyncio
from copy import deepcopy
from typing import NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage

from crag.answering.context import fenced, kept_strips, paper_format
from crag.answering.model_calls import Reply, aask, ask
from crag.answering.outcome import NOT_FOUND, GenerateUpdate, abstained, from_quotations, from_reply
from crag.correction.action import branches
from crag.correction.strips import score_of
from crag.errors import ModelProblem
from crag.events import Event, EventKind, event
from crag.parts import ChatModel, Quotation, Quoter
from crag.prompts import PACKAGED, Prompts
from crag.runtime.attempt import Attempt
from crag.runtime.replies import quotations_of
from crag.settings import Settings
from crag.state import State, Strip
from crag.tasks import written
from crag.text.untrusted import neutral

_KINDS: dict[ModelProblem, EventKind] = {"refused": "model_refused", "empty": "model_empty"}


class Generate:
    """Answer the original question with one model call, or by quoting, or abstain.

    Without knowledge the model is asked only where its own knowledge is allowed. A model that
    fails, refuses or says nothing gives way to quotations, and those to an abstention.
    """

    def __init__(
        self,
        model: ChatModel | None,
        quoter: Quoter | None,
        prompts: Prompts = PACKAGED,
        *,
        own_knowledge: bool = False,
    ) -> None:
        self._model = model
        self._quoter = quoter
        self._prompts = prompts
        self._own_knowledge = own_knowledge

    def run(self, state: State, settings: Settings) -> GenerateUpdate:
        """Generate in the calling thread."""
        plan = self._plan(state, settings)
        reply = None if plan.call is None else ask(*plan.call)
        return self._conclude(state, settings, plan, reply)

    async def arun(self, state: State, settings: Settings) -> GenerateUpdate:
        """Generate without blocking the event loop."""
        plan = self._plan(state, settings)
        reply = None if plan.call is None else await aask(*plan.call)
        return await asyncio.to_thread(self._conclude, state, settings, plan, reply)

    def _plan(self, state: State, settings: Settings) -> "_Plan":
        strips = kept_strips(state, settings)
        own_knowledge = self._own_knowledge or settings.allow_own_knowledge
        if self._model is None or not (strips or own_knowledge):
            return _Plan(strips, "", None, [])
        if state.get("usage", {}).get("llm_calls", 0) >= settings.max_llm_calls:
            detail = f"max_llm_calls is {settings.max_llm_calls}, so no model writes the answer"
            return _Plan(strips, "", None, [event("budget_exhausted", "generate", detail)])
        knowledge = fenced(strips) if settings.cites else paper_format(state, settings)
        messages = _prompt(self._prompts, state, knowledge, settings)
        return _Plan(strips, knowledge, (_limited(self._model, settings), messages), [])

    def _conclude(
        self, state: State, settings: Settings, plan: "_Plan", reply: Reply | None
    ) -> GenerateUpdate:
        if reply is not None and reply.problem is None:
            cites = bool(plan.strips) and settings.cites
            update = from_reply(state, reply, plan.knowledge, plan.strips, cites=cites)
            if cites and settings.require_citations and _is_uncited(update):
                events = [*plan.events, *update["events"]]
                return self._without_reply(state, settings, plan._replace(events=events), reply)
            if not plan.strips:
                detail = "no knowledge was left: the answer rests on the model alone"
                update["events"].append(event("own_knowledge", "generate", detail))
            return update
        return self._without_reply(state, settings, plan, reply)

    def _without_reply(
        self, state: State, settings: Settings, plan: "_Plan", reply: Reply | None
    ) -> GenerateUpdate:
        quotations, events = self._quote(state, settings, plan)
        fallback = "quote the strips" if quotations else "abstain"
        if reply is not None and reply.problem is not None:
            kind = _KINDS.get(reply.problem, "model_failed")
            events = [event(kind, "generate", reply.detail, fallback), *events]
        if quotations:
            update = from_quotations(state, quotations, plan.strips, events)
        else:
            update = abstained(state, plan.knowledge, events, _why_nothing(state, plan.strips))
        if reply is not None:
            update["usage"] = reply.usage
        return update

    def _quote(
        self, state: State, settings: Settings, plan: "_Plan"
    ) -> tuple[list[Quotation], list[Event]]:
        quotations: list[Quotation] = []
        if self._quoter is None or not plan.strips:
            return quotations, plan.events
        with Attempt("quoter") as attempt:
            question = settings.profile.bare_question(state)
            reply = self._quoter.quote(question, deepcopy(plan.strips))
            quotations = quotations_of(reply, plan.strips)
        if attempt.error is not None:
            failed = event("evaluator_failed", "generate", attempt.error, "nothing is quoted")
            return [], [*plan.events, failed]
        action = state.get("action")
        if quotations or action is None or branches(action) != ["refine"]:
            return quotations, plan.events
        # Correct says that the documents hold the answer; an abstention would deny it.
        detail = "the documents were judged correct, but no part of them reaches the threshold"
        weak = event("weak_quotation", "generate", detail, "quote the best strip")
        return [best_of(plan.strips)], [*plan.events, weak]


class _Plan(NamedTuple):
    """What generation is about to do; `call` is None when no model is to be asked."""

    strips: list[Strip]
    knowledge: str
    call: tuple[ChatModel, list[AnyMessage]] | None
    events: list[Event]


def best_of(strips: list[Strip]) -> Quotation:
    """Return the strip with the highest score as a quotation."""
    best = max(range(len(strips)), key=lambda index: score_of(strips[index]))
    text = strips[best]["text"]
    return Quotation(text, best, score_of(strips[best]), place=(0, len(text)))


def _is_uncited(update: GenerateUpdate) -> bool:
    return not (update["citations"] or update["abstained"])


def _prompt(prompts: Prompts, state: State, knowledge: str, settings: Settings) -> list[AnyMessage]:
    profile = settings.profile
    posed = profile.posed(state)
    values = {
        "question": neutral(posed["question"]) if settings.cites else posed["question"],
        "options": written(posed["options"]) or "those that the question names",
    }
    if not knowledge:
        return prompts.render(profile.own_prompt, **values)
    return prompts.render(profile.answer_prompt, **values, knowledge=knowledge, not_found=NOT_FOUND)


def _limited(model: ChatModel, settings: Settings) -> ChatModel:
    if settings.max_answer_tokens is None or not isinstance(model, BaseChatModel):
        return model
    return model.bind(max_tokens=settings.max_answer_tokens)


def _why_nothing(state: State, strips: list[Strip]) -> str:
    if strips:
        return "nothing in the strips that were kept answers the question"
    action = state.get("action")
    return f"no knowledge was left after the action {action}" if action else "there is no knowledge"

"""Generate the answer from the knowledge that was kept."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AnyMessage

from crag.answering.citations import why_empty
from crag.answering.context import fenced, kept_strips
from crag.answering.model_calls import Reply, aask, ask
from crag.answering.outcome import (
    FOUND_NOTHING,
    NOT_FOUND,
    AnswerUpdate,
    declines,
    from_reply,
    quoted_or_abstained,
)
from crag.errors import ModelProblem
from crag.events import EventKind, event
from crag.parts import ChatModel, Parts
from crag.settings import Settings
from crag.state import State, Strip
from crag.text.untrusted import neutral

_KINDS: dict[ModelProblem, EventKind] = {"refused": "model_refused", "empty": "model_empty"}


@dataclass(frozen=True)
class Generate:
    """Answer the question with one model call, or by quoting, or abstain.

    Without knowledge the model is asked only where its own knowledge is allowed. A model that
    fails, refuses, or says nothing, such as citations without a word, gives way to quotations, and
    those to an abstention. One that finds no answer gives way to a quotation that is sure to be it.
    """

    parts: Parts
    own_knowledge: bool = False

    def run(self, state: State, settings: Settings) -> AnswerUpdate:
        """Write the answer with its citations, or an abstention."""
        model, messages = self._asked(state, settings)
        return self._concluded(state, settings, ask(model, messages) if model else None)

    async def arun(self, state: State, settings: Settings) -> AnswerUpdate:
        """Do the same, awaiting the model."""
        model, messages = self._asked(state, settings)
        reply = await aask(model, messages) if model else None
        return await asyncio.to_thread(self._concluded, state, settings, reply)

    def _asked(
        self, state: State, settings: Settings
    ) -> tuple[ChatModel | None, Sequence[AnyMessage]]:
        """Return the model if it is to be asked, and what."""
        strips, model, profile = kept_strips(state), self.parts.model, settings.profile
        if model is None or not (strips or self.own_knowledge or settings.allow_own_knowledge):
            return None, []
        if settings.max_answer_tokens is not None:
            model = model.bind(max_tokens=settings.max_answer_tokens)
        asked = state.get("asked") or state["question"]
        posed, options = profile.split_apart(asked)
        # The whole of what was asked, unless that was read otherwise: a follow-up, a typing error.
        question = asked if not options and posed == state["question"] else state["question"]
        values = profile.values(options) | {
            "question": neutral(question) if settings.cites else question,
            "knowledge": profile.knowledge(state) if profile.knowledge else fenced(strips),
            "not_found": NOT_FOUND,
        }
        return model, self.parts.prompts.render(self._wording(state, settings, strips), **values)

    def _wording(self, state: State, settings: Settings, strips: Sequence[Strip]) -> str:
        """Return the prompt that asks for the answer, by what the evaluator says of the knowledge.

        Where the action is Correct, a small model that may decline still does, and one that is to
        write numbers writes little else: so it may not, and attribution finds the numbers. Whoever
        replaced the prompt for all answers is asked with no other.
        """
        profile, prompts = settings.profile, self.parts.prompts
        if not strips:
            return profile.own_prompt
        name = profile.correct_prompt
        usable = name and self.parts.attributor is not None and state.get("action") == "correct"
        if usable and (prompts.replaces(name) or not prompts.replaces(profile.answer_prompt)):
            return name
        return profile.answer_prompt

    def _concluded(self, state: State, settings: Settings, reply: Reply | None) -> AnswerUpdate:
        strips, quoter = kept_strips(state), self.parts.quoter
        problem = _problem(reply, settings) if reply else None
        if reply is None or problem is not None:
            return quoted_or_abstained(state, quoter, strips, problem=problem, reply=reply)
        update, detail = from_reply(
            reply, strips, question=state["question"], cites=settings.cites,
            attributor=self.parts.attributor,
        )  # fmt: skip
        events = update["events"]
        if detail and settings.require_citations:
            problem = "uncited_answer", detail
            return quoted_or_abstained(
                state, quoter, strips, events=events, problem=problem, reply=reply
            )
        if detail:
            events.append(event("uncited_answer", "generate", detail, "the answer is shown"))
        if not strips:
            detail = "no knowledge was left: the answer rests on the model alone"
            events.append(event("own_knowledge", "generate", detail))
        return update


def _problem(reply: Reply, settings: Settings) -> tuple[EventKind, object] | None:
    """Return the event of a reply that is no answer."""
    if reply.problem is not None:
        return _KINDS.get(reply.problem, "model_failed"), reply.detail
    if declines(reply.text):
        return "model_declined", FOUND_NOTHING
    nothing = why_empty(reply.text) if settings.cites else ""
    return ("wordless_answer", f"the model {nothing}: {reply.text}") if nothing else None

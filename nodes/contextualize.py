"""Make a follow-up question self-contained."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AnyMessage, HumanMessage
from typing_extensions import TypedDict

from crag.answering.model_calls import aask
from crag.events import Event, event
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import State, Usage, spoken
from crag.text.untrusted import neutral
from crag.wording import with_subject

_MARK = re.compile("[?？؟\u037e]")
"""Question marks; the last one is the Greek one."""
_AS_ASKED = "use the question as it was asked"
WITH_SUBJECT = "complete it by the question that it follows"
"""The fallback of an event after which a rule has completed the question."""
_LONGEST_MESSAGE = 1000
"""Characters of each earlier message that the model reads."""
HISTORY = 6
"""Earlier messages that it reads."""


class ContextualizeUpdate(TypedDict):
    """Written by `contextualize`."""

    question: str
    events: list[Event]
    usage: Usage


@dataclass(frozen=True)
class Contextualize:
    """Make a follow-up question in a chat self-contained, with one model call.

    `question` becomes the self-contained question, which retrieval, grading and the answer use;
    `asked` keeps the original. Where no model can write it, one that leans on the question
    before is completed by it. The node runs only if there is a history.
    """

    model: ChatModel | None
    prompts: Prompts = PACKAGED

    async def run(self, state: State, settings: Settings) -> ContextualizeUpdate:
        """Write the self-contained question, and what was asked."""
        asked, usage = state["question"], Usage()
        if self.model is None:
            detail = "no chat model is configured to make the question self-contained"
            reason = event("contextualize_skipped", "contextualize", detail)
        elif settings.max_llm_calls <= 1:
            detail = f"max_llm_calls is {settings.max_llm_calls}; the last call is for the answer"
            reason = event("contextualize_skipped", "contextualize", detail)
        else:
            reply = await aask(self.model, self._prompt(state, asked))
            usage, failed = reply.usage, reply.detail
            if reply.problem is None:
                question = " ".join(reply.text.split()).strip('"“”')
                is_short = len(question) <= settings.max_question_characters
                if _is_usable(question, asked) and is_short:
                    return _update(question, settings, [], usage)
                failed = f"the model's reply is not a question: {reply.text[:80]!r}"
            reason = event("contextualize_failed", "contextualize", failed)
        return _by_rule(state, settings, reason, usage)

    def _prompt(self, state: State, asked: str) -> list[AnyMessage]:
        lines = _lines(spoken(state)[:-1], HISTORY)
        return self.prompts.render(
            "contextualize", question=neutral(asked), history="\n".join(lines)
        )


def completed(asked: str, state: State, settings: Settings) -> str:
    """Return a follow-up completed by the question before, where it leans on that, by a rule."""
    before = [one.text for one in spoken(state)[:-1] if isinstance(one, HumanMessage)]
    question = with_subject(asked, before)
    return question if len(question) <= settings.max_question_characters else asked


def _by_rule(state: State, settings: Settings, reason: Event, usage: Usage) -> ContextualizeUpdate:
    """Do without a model's question, for the `reason` that is recorded."""
    asked = state["question"]
    question = completed(asked, state, settings)
    reason = {**reason, "fallback": _AS_ASKED if question == asked else WITH_SUBJECT}
    return _update(question, settings, [reason], usage)


def _is_usable(reply: str, asked: str) -> bool:
    """Say whether a reply is a question, if the follow-up was one: small models answer it."""
    return bool(reply) and (_MARK.search(reply) is not None or _MARK.search(asked) is None)


def _update(
    question: str, settings: Settings, events: list[Event], usage: Usage
) -> ContextualizeUpdate:
    question = settings.profile.split_apart(question)["question"]
    return ContextualizeUpdate(question=question, events=events, usage=usage)


def _lines(messages: Sequence[AnyMessage], most: int) -> list[str]:
    return [
        f"{'user' if isinstance(message, HumanMessage) else 'assistant'}: "
        f"{neutral(' '.join(message.text.split())[:_LONGEST_MESSAGE])}"
        for message in [one for one in messages if one.text][-most:]
    ]

"""Make a follow-up question self-contained."""

import re
from collections.abc import Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from crag.answering.model_calls import Reply, aask, ask
from crag.correction.question import read_question
from crag.events import Event, event
from crag.nodes.open_run import OpeningUpdate, opening
from crag.parts import ChatModel
from crag.prompts import PACKAGED, Prompts
from crag.settings import Settings
from crag.state import FollowUp, FreshEvents, FreshUsage, InputState, Usage
from crag.text.untrusted import neutral
from crag.wording import with_subject

_MARK = re.compile("[?？؟\u037e]")
"""Question marks; the last one is the Greek one."""
_AS_ASKED = "use the question as it was asked"
_WITH_SUBJECT = "put the question that it follows in front of it"
_LONGEST_MESSAGE = 1000
"""Characters of each earlier message that the model reads."""


class Contextualize:
    """Open the run of a follow-up question in a chat, with one model call.

    `question` becomes the self-contained question, which retrieval, grading and the answer use;
    `follow_up` keeps the original. Where no model can write it, the question before is put in front
    of one that leans on it. The node runs only if there is a history.

    Raises:
        QuestionError: the input holds no usable question.
    """

    def __init__(self, model: ChatModel | None, prompts: Prompts = PACKAGED) -> None:
        self._model = model
        self._prompts = prompts

    def run(self, state: InputState, settings: Settings) -> OpeningUpdate:
        """Contextualize in the calling thread."""
        asked = read_question(state, settings.max_question_characters)
        if self._model is None or settings.max_llm_calls <= 1:
            return self._skipped(state, asked, settings)
        reply = ask(self._model, self._prompt(state["messages"], asked, settings))
        return _read(state, asked, reply, settings)

    async def arun(self, state: InputState, settings: Settings) -> OpeningUpdate:
        """Contextualize without blocking the event loop."""
        asked = read_question(state, settings.max_question_characters)
        if self._model is None or settings.max_llm_calls <= 1:
            return self._skipped(state, asked, settings)
        reply = await aask(self._model, self._prompt(state["messages"], asked, settings))
        return _read(state, asked, reply, settings)

    def _prompt(
        self, messages: Sequence[AnyMessage], asked: str, settings: Settings
    ) -> list[AnyMessage]:
        lines = _spoken(messages[:-1], settings.history_messages)
        return self._prompts.render(
            "contextualize", question=neutral(asked), history="\n".join(lines)
        )

    def _skipped(self, state: InputState, asked: str, settings: Settings) -> OpeningUpdate:
        detail = "no chat model is configured to make the question self-contained"
        if self._model is not None:
            detail = f"max_llm_calls is {settings.max_llm_calls}; the last call is for the answer"
        told = event("contextualize_skipped", "contextualize", detail)
        return _by_rule(state, asked, settings, told)


def _read(state: InputState, asked: str, reply: Reply, settings: Settings) -> OpeningUpdate:
    question = " ".join(reply.text.split()).strip('"“”')
    detail = reply.detail
    if reply.problem is None:
        if _asks(question, asked) and len(question) <= settings.max_question_characters:
            return _update(state, asked, opening(question, settings), [], reply.usage)
        detail = f"the model's reply is not a question: {reply.text[:80]!r}"
    told = event("contextualize_failed", "contextualize", detail)
    return _by_rule(state, asked, settings, told, reply.usage)


def _by_rule(
    state: InputState, asked: str, settings: Settings, told: Event, usage: Usage | None = None
) -> OpeningUpdate:
    """Do without a model's question, for the reason that is `told`."""
    before = [one.text for one in state["messages"][:-1] if isinstance(one, HumanMessage)]
    question = with_subject(asked, before)
    if len(question) > settings.max_question_characters:
        question = asked
    told = {**told, "fallback": _AS_ASKED if question == asked else _WITH_SUBJECT}
    return _update(state, asked, opening(question, settings), [told], usage)


def _asks(reply: str, asked: str) -> bool:
    """Say whether a reply is a question, if the follow-up was one: small models answer it."""
    return bool(reply) and (_MARK.search(reply) is not None or _MARK.search(asked) is None)


def _update(
    state: InputState,
    asked: str,
    update: OpeningUpdate,
    events: list[Event],
    usage: Usage | None = None,
) -> OpeningUpdate:
    update["events"] = FreshEvents(events)
    update["usage"] = FreshUsage.of(usage or Usage())
    update["follow_up"] = FollowUp(message_id=state["messages"][-1].id or "", asked=asked)
    return update


def _spoken(messages: Sequence[AnyMessage], most: int) -> list[str]:
    spoken = [m for m in messages if isinstance(m, HumanMessage | AIMessage) and m.text]
    return [
        f"{'user' if isinstance(message, HumanMessage) else 'assistant'}: "
        f"{neutral(' '.join(message.text.split())[:_LONGEST_MESSAGE])}"
        for message in spoken[-most:]
    ]

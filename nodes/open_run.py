"""Open the run: read the question, and clear what an earlier one left."""

from typing import Any, cast

from langchain_core.messages import HumanMessage
from langgraph.types import Overwrite

from crag.errors import QuestionError
from crag.plain import well_formed
from crag.settings import Settings
from crag.state import STANDS_ALONE, State

_BEFORE_FOLLOW_UPS = 2
"""Questions of a chat of which none was completed by those before it, besides one refused."""


def open_run(state: State, settings: Settings) -> State:
    """Read the question and clear every other key of the thread: the first node.

    A question that did not come as a message becomes one.

    Raises:
        QuestionError: the input holds no usable question.
    """
    message = _asking_message(state, settings)
    asked = _checked(message.text if message else state.get("question"), settings)
    opened: dict[str, Any] = {
        "question": settings.profile.split_apart(asked)[0], "asked": asked, "documents": [],
        "thresholds": None, "action": None, "query": "", "pages": [], "strips": Overwrite([]),
        "answer": "", "outcome": None, "citations": [], "sentences": [], "events": Overwrite([]),
        "usage": Overwrite({}), "reflection": None,
    }  # fmt: skip
    if message is None:
        opened["messages"] = [HumanMessage(asked, additional_kwargs={STANDS_ALONE: True})]
    return cast("State", opened)


def _asking_message(state: State, settings: Settings) -> HumanMessage | None:
    """Return the message that asks, or None where the key `question` is newer.

    It is if an earlier run has read the message and ended without an answer, or has refused it. In
    a longer chat, an earlier run may have written the key.
    """
    messages, question = state.get("messages") or [], state.get("question")
    if not (messages and isinstance(messages[-1], HumanMessage)):
        return None
    text, asked = well_formed(messages[-1].text).strip(), state.get("asked", "")
    was_read = not state.get("answer") and text == asked
    is_first = sum(isinstance(one, HumanMessage) for one in messages) <= _BEFORE_FOLLOW_UPS
    is_given = is_first and question not in {asked, settings.profile.split_apart(asked)[0]}
    was_refused = is_given and not 0 < len(text) <= settings.max_question_characters
    return None if question and (was_read or was_refused) else messages[-1]


def _checked(question: object, settings: Settings) -> str:
    if question is None:  # Many clients send null for what is not set.
        question = ""
    if not isinstance(question, str):
        raise QuestionError(f"question must be text, not {type(question).__name__}")
    question, longest = well_formed(question).strip(), settings.max_question_characters
    if not question:
        raise QuestionError("question is empty: give `question`, or `messages` that end with it")
    if len(question) > longest:
        limit = f"the limit is {longest:,}: raise the setting max_question_characters"
        raise QuestionError(f"question has {len(question):,} characters, {limit}")
    return question

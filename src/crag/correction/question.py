"""Find the question in the input."""

from langchain_core.messages import AIMessage, HumanMessage

from crag.errors import QuestionError
from crag.plain import well_formed
from crag.state import InputState, OpenState


def is_follow_up(state: InputState) -> bool:
    """Return whether the question is a message that follows others."""
    messages = state.get("messages") or []
    spoken = [message for message in messages if isinstance(message, HumanMessage | AIMessage)]
    return len(spoken) > 1 and messages[-1] is spoken[-1] and isinstance(spoken[-1], HumanMessage)


def is_open(state: OpenState) -> bool:
    """Return whether the run was already opened for the follow-up question in the last message."""
    messages, follow_up = state.get("messages") or [], state.get("follow_up")
    return bool(messages) and follow_up is not None and follow_up["message_id"] == messages[-1].id


def read_question(state: InputState, longest: int) -> str:
    """Return the question: the last message if a human wrote it, else `question`.

    Raises:
        QuestionError: it is missing, only white space, or longer than `longest` characters.
    """
    messages = state.get("messages") or []
    asked_in_chat = bool(messages) and isinstance(messages[-1], HumanMessage)
    question = messages[-1].text if asked_in_chat else state.get("question", "")
    if not isinstance(question, str):
        message = f"question must be text, not {type(question).__name__}"
        raise QuestionError(message)
    question = well_formed(question).strip()
    if not question:
        message = "question is empty: give `question`, or `messages` whose last one asks it"
        raise QuestionError(message)
    if len(question) > longest:
        message = (
            f"question has {len(question):,} characters, the limit is {longest:,}: shorten it, "
            "or raise the setting max_question_characters"
        )
        raise QuestionError(message)
    return question

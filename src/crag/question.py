"""Find the question in what a caller gave."""

from langchain_core.messages import HumanMessage

from crag.errors import QuestionError
from crag.state import InputState


def read_question(state: InputState, longest: int) -> str:
    """Return the question: the last message if a human wrote it, else `question`.

    Raises:
        QuestionError: there is none, it is only white space, or it has over `longest` characters.
    """
    messages = state.get("messages") or []
    asked_in_chat = bool(messages) and isinstance(messages[-1], HumanMessage)
    question = messages[-1].text if asked_in_chat else state.get("question", "")
    if not isinstance(question, str):
        message = f"question must be text, not {type(question).__name__}"
        raise QuestionError(message)
    question = question.strip()
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

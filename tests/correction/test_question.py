"""Reading the question."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from crag.correction.question import read_question
from crag.errors import QuestionError
from crag.state import InputState


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"question": ""},
        {"question": " \n\t"},
        {"messages": []},
        {"messages": [AIMessage("hello")]},
        {"messages": [HumanMessage("  ")]},
    ],
)
def test_no_question_is_an_error_with_the_fix(state: InputState) -> None:
    with pytest.raises(QuestionError, match="question is empty: give"):
        read_question(state, 100)


def test_a_question_of_another_type_is_an_error() -> None:
    with pytest.raises(QuestionError, match="must be text, not int"):
        read_question({"question": 7}, 100)  # type: ignore[typeddict-item]


def test_a_very_long_question_is_refused_with_its_length() -> None:
    with pytest.raises(QuestionError, match=r"100,000 characters, the limit is 8,000"):
        read_question({"question": "x" * 100_000}, 8000)


def test_the_human_message_at_the_end_is_the_question() -> None:
    state: InputState = {"question": "old", "messages": [HumanMessage("new?")]}
    assert read_question(state, 100) == "new?"
    answered: InputState = {"question": "old?", "messages": [HumanMessage("x"), AIMessage("y")]}
    assert read_question(answered, 100) == "old?"

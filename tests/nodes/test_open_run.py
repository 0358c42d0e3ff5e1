"""The first node reads the question."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from crag.errors import QuestionError
from crag.nodes.open_run import OpenRun
from crag.settings import Settings
from crag.state import InputState


def read_question(state: InputState) -> str:
    return OpenRun().run(state, Settings())["question"]


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
        read_question(state)


def test_white_space_around_a_question_is_removed() -> None:
    assert read_question({"question": " Who wrote it?\n"}) == "Who wrote it?"


def test_a_question_of_another_type_is_an_error() -> None:
    with pytest.raises(QuestionError, match="must be text, not int"):
        read_question({"question": 7})  # type: ignore[typeddict-item]


def test_a_very_long_question_is_refused_with_its_length() -> None:
    with pytest.raises(QuestionError, match=r"100,000 characters, the limit is 8,000"):
        read_question({"question": "x" * 100_000})


def test_the_human_message_at_the_end_is_the_question() -> None:
    state: InputState = {"question": "old", "messages": [HumanMessage("new?")]}
    assert read_question(state) == "new?"
    answered: InputState = {"question": "old?", "messages": [HumanMessage("x"), AIMessage("y")]}
    assert read_question(answered) == "old?"

"""The first node reads the question."""

from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from crag.errors import QuestionError
from crag.nodes.open_run import OpeningUpdate, OpenRun
from crag.settings import Settings
from crag.state import InputState, State


def opened(state: Any) -> Any:
    return OpenRun().run(state, Settings())


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"question": ""},
        {"question": " \n\t"},
        {"messages": []},
        cast("InputState", {"question": None}),
        {"messages": [AIMessage("hello")]},
        {"messages": [HumanMessage("  ")]},
    ],
)
def test_no_question_is_an_error_with_the_fix(state: InputState) -> None:
    with pytest.raises(QuestionError, match="question is empty: give"):
        opened(state)


def test_a_question_of_another_type_or_too_long_is_an_error() -> None:
    with pytest.raises(QuestionError, match="must be text, not int"):
        opened({"question": 7})
    with pytest.raises(QuestionError, match=r"100,000 characters, the limit is 8,000"):
        opened({"question": "x" * 100_000})


def test_a_question_becomes_a_message_of_the_chat() -> None:
    update = opened({"question": " Who wrote it?\n"})
    assert update["question"] == update["asked"] == "Who wrote it?"
    assert [one.text for one in update["messages"]] == ["Who wrote it?"]
    assert "messages" not in opened({"messages": [HumanMessage("Who?")]})


def test_courtesies_are_no_part_of_the_question() -> None:
    update = opened({"question": "Please tell me how to start the page, thanks"})
    assert update["question"] == "How to start the page"
    assert update["asked"] == "Please tell me how to start the page, thanks"


@pytest.mark.parametrize(
    ("state", "asked"),
    [
        ({"question": "old", "messages": [HumanMessage("new?")]}, "new?"),
        ({"question": "new?", "messages": [HumanMessage("x"), AIMessage("y")]}, "new?"),
        # The message was read by a run that gave no answer, and the question came after that.
        ({"question": "new?", "asked": "x", "answer": "", "messages": [HumanMessage("x")]}, "new?"),
        # The thread was answered; the message is newer than what its last run has read.
        ({"question": "old", "asked": "x", "answer": "y", "messages": [HumanMessage("x")]}, "x"),
    ],
)
def test_the_newest_input_is_asked(state: Any, asked: str) -> None:
    assert opened(state)["asked"] == asked


def test_nothing_of_an_earlier_question_stays() -> None:
    assert OpeningUpdate.__annotations__.keys() == State.__annotations__.keys()

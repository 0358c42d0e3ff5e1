"""The first node reads the question."""

from typing import cast

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from crag.errors import QuestionError
from crag.events import event
from crag.nodes.open_run import REFLECTED, OpeningUpdate, OpenRun
from crag.settings import Settings
from crag.state import InputState, State, extend_events


def read_question(state: InputState) -> str:
    return OpenRun().run(cast("State", state), Settings())["question"]


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


def test_events_are_cleared_when_a_checkpointer_has_kept_what_was_written() -> None:
    serializer = JsonPlusSerializer()
    written = OpenRun().run({"question": "Who?"}, Settings())["events"]
    kept = serializer.loads_typed(serializer.dumps_typed(written))
    earlier = [event("abstained", "generate", "Of the question before.")]
    assert extend_events(earlier, kept) == []
    assert extend_events(earlier, earlier) == earlier * 2


def test_nothing_of_an_earlier_question_stays_but_the_chat() -> None:
    kept = State.__annotations__.keys() - OpeningUpdate.__annotations__.keys() - REFLECTED.keys()
    assert kept == {"messages"}


def test_what_reflection_wrote_is_cleared_where_the_thread_has_it() -> None:
    asked: State = {"question": "Who?", "critiques": [], "approximation": "embedded"}
    opened = OpenRun().run(asked, Settings())
    assert opened.keys() - OpeningUpdate.__annotations__.keys() == {"critiques", "approximation"}
    assert cast("State", opened)["approximation"] == ""

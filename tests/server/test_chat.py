"""Chats: answers are appended as messages, and follow-up questions are made self-contained."""

from typing import Any

import pytest

from tests.server.asking import GRAPHS, QUESTION, QUICK, new_thread, says
from tests.server.chat import SELF_CONTAINED, Chat

pytestmark = pytest.mark.slow
FOLLOW_UP = "And when it is Ambiguous?"


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_follow_up_is_answered_in_its_chat(client: Any, chat: Chat, graph: str) -> None:
    thread = new_thread(client)
    first = client.runs.wait(thread, graph, input=says(QUESTION), context=QUICK)
    assert (first["question"], first["follow_up"]) == (QUESTION, None)
    asked = len(chat.prompts)
    state = client.runs.wait(thread, graph, input=says(FOLLOW_UP), context=QUICK)
    messages = state["messages"]

    assert [message["type"] for message in messages] == ["human", "ai", "human", "ai"]
    assert state["question"] == SELF_CONTAINED
    assert state["follow_up"] == {"asked": FOLLOW_UP, "message_id": messages[2]["id"]}
    assert [message["content"] for message in messages] == [
        QUESTION, first["answer"], FOLLOW_UP, state["answer"],
    ]  # fmt: skip
    assert first["citations"]
    assert messages[1]["additional_kwargs"]["citations"] == first["citations"]
    assert messages[3]["additional_kwargs"]["citations"] == state["citations"]

    conversation = chat.prompts[asked]
    assert f"user: {QUESTION}" in conversation
    told = " ".join(first["answer"].split()).removesuffix("[1].")
    assert f"assistant: {told}" in conversation
    assert FOLLOW_UP in conversation
    if graph in {"crag", "rag"}:
        assert SELF_CONTAINED in chat.prompts[-1]


def test_a_whole_chat_can_be_sent_at_once(client: Any) -> None:
    history = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "Then it is Incorrect."},
        {"role": "user", "content": FOLLOW_UP},
    ]
    stream = client.runs.stream(
        None, "rag", input={"messages": history}, context=QUICK, stream_mode="updates"
    )
    nodes = [node for part in stream if part.event == "updates" for node in part.data]
    assert nodes == ["open_run", "contextualize", "retrieve", "pass_through", "generate"]


def test_a_chat_can_do_without_self_contained_questions(client: Any, chat: Chat) -> None:
    thread, settings = new_thread(client), QUICK | {"contextualize": False}
    client.runs.wait(thread, "rag", input=says(QUESTION), context=settings)
    asked = len(chat.prompts)
    state = client.runs.wait(thread, "rag", input=says(FOLLOW_UP), context=settings)
    assert (state["question"], state["follow_up"]) == (FOLLOW_UP, None)
    assert len(chat.prompts) == asked + 1

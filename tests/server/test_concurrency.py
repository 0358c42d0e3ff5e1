"""Clients that leave in the middle, and two runs on one thread."""

from typing import Any

import httpx
import pytest
from langgraph_sdk.errors import ConflictError

from tests.server.asking import INPUT, QUICK, eventually, new_thread, statuses
from tests.server.chat import ANSWER, Chat

pytestmark = pytest.mark.slow
OTHER = {"question": "What is a knowledge strip?"}


def leave(url: str, thread: str, chat: Chat, **options: str) -> None:
    """Start a streamed run, and go away while it waits for the model."""
    body = {"assistant_id": "rag", "input": INPUT, "context": QUICK, "stream_mode": ["updates"]}
    path = f"{url}/threads/{thread}/runs/stream"
    with httpx.stream("POST", path, json=body | options, timeout=60) as stream:
        lines = stream.iter_lines()  # Kept: the end of an iterator closes the connection.
        assert any('"pass_through"' in line for line in lines)
        assert chat.arrived.wait(20)


def test_a_run_is_cancelled_when_its_client_leaves_if_it_was_asked_to(
    client: Any, url: str, chat: Chat
) -> None:
    thread = new_thread(client)
    with chat.held():
        leave(url, thread, chat, on_disconnect="cancel")
        eventually(lambda: statuses(client, thread), ["interrupted"])
    assert client.threads.get_state(thread)["next"] == ["generate"]
    state = client.runs.wait(thread, "rag", input=None, context=QUICK)  # Taken up again.
    assert state["answer"] == ANSWER


@pytest.mark.parametrize("options", [{"on_disconnect": "continue"}, {}])
def test_otherwise_it_goes_on(client: Any, url: str, chat: Chat, options: dict[str, str]) -> None:
    thread = new_thread(client)
    with chat.held():
        leave(url, thread, chat, **options)
        assert statuses(client, thread) == ["running"]
    eventually(lambda: statuses(client, thread), ["success"])
    assert client.threads.get_state(thread)["values"]["answer"] == ANSWER


def busy(client: Any, chat: Chat) -> tuple[str, str]:
    """Start a run that waits for the model; return its thread and its own id."""
    thread = new_thread(client)
    run = client.runs.create(thread, "rag", input=INPUT, context=QUICK)
    assert chat.arrived.wait(20)
    return thread, str(run["run_id"])


def second(client: Any, thread: str, strategy: str) -> Any:
    return client.runs.create(
        thread, "rag", input=OTHER, context=QUICK, multitask_strategy=strategy
    )


def test_a_second_run_is_rejected(client: Any, chat: Chat) -> None:
    with chat.held():
        thread, _ = busy(client, chat)
        with pytest.raises(ConflictError, match="already running a task"):
            second(client, thread, "reject")
    eventually(lambda: statuses(client, thread), ["success"])
    assert client.threads.get_state(thread)["values"]["question"] == INPUT["question"]


@pytest.mark.parametrize(
    ("strategy", "becomes"),
    [
        ("enqueue", ["success", "success"]),
        ("interrupt", ["interrupted", "success"]),
        ("rollback", ["success"]),
    ],
)
def test_or_it_waits_or_takes_the_place_of_the_first(
    client: Any, chat: Chat, strategy: str, becomes: list[str]
) -> None:
    with chat.held():
        thread, first = busy(client, chat)
        second(client, thread, strategy)
        if strategy == "enqueue":
            assert statuses(client, thread) == ["running", "pending"]
    eventually(lambda: statuses(client, thread), becomes)
    state = client.threads.get_state(thread)["values"]
    assert (state["question"], state["answer"]) == (OTHER["question"], ANSWER)
    assert len(state["events"]) == 0
    runs = {run["run_id"] for run in client.runs.list(thread)}
    assert (first in runs) == (strategy != "rollback")

"""What is wrong with a request is told in the API's own error form; nothing ends unexplained."""

from typing import Any

import httpx
import pytest
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph_sdk.client import SyncLangGraphClient

from tests.server.asking import GRAPHS, INPUT, QUESTION, QUICK, new_thread, says
from tests.server.chat import ANSWER
from tests.server.conftest import HOSTILE

pytestmark = pytest.mark.slow
UNKNOWN_ID = "7f3f3f3f-0000-4000-8000-000000000000"
ASSISTANT = {"role": "assistant", "content": "A strip is a part of a document."}


def post(url: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{url}/runs/wait", json={"assistant_id": "crag"} | body, timeout=60)


def test_an_unknown_graph_is_told_the_known_ones(url: str) -> None:
    reply = post(url, assistant_id="carg", input=INPUT)
    assert reply.status_code == 422
    assert "Invalid assistant: 'carg'" in reply.json()["detail"]
    assert all(graph in reply.json()["detail"] for graph in GRAPHS)
    reply = post(url, assistant_id=UNKNOWN_ID, input=INPUT)
    assert (reply.status_code, reply.json()["detail"]) == (404, "Thread or assistant not found.")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"k": 0}, ("k", "at least 1", "cannot be 0")),
        ({"k": "many"}, ("k", "whole number", "cannot be 'many'")),
        ({"upper": 0.1, "lower": 0.2}, ("lower (0.2) must not be above upper (0.1)",)),
        ({"task": "trivia"}, ("task", "'default', 'popqa'", "cannot be 'trivia'")),
    ],
)
def test_a_setting_out_of_bounds_names_field_value_and_range(
    url: str, settings: dict[str, Any], told: tuple[str, ...]
) -> None:
    error = post(url, input=INPUT, context=settings).json()["__error__"]
    assert error["error"] == "SettingsError"
    for words in told:
        assert words in error["message"]


def test_an_unknown_setting_is_ignored_and_settings_that_are_none_are_refused(
    url: str, *, production: bool
) -> None:
    assert post(url, input=INPUT, context=QUICK | {"uper": 5}).json()["answer"] == ANSWER
    reply = post(url, input=INPUT, context="k=2")
    assert reply.status_code == 422
    told = (
        "context: Input should be a valid dict" if production else '"k=2" is not of type "object"'
    )
    assert told in reply.json()["detail"]


EMPTY = "question is empty: give `question`, or `messages` whose last one asks it"


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ({}, "QuestionError", EMPTY),
        ({"question": 7}, "QuestionError", "question must be text, not int"),
        ({"question": None, "messages": None}, "QuestionError", EMPTY),
        ({"question": "x" * 8001}, "QuestionError", "8,001 characters, the limit is 8,000"),
        ({"messages": [*says("What is a strip?")["messages"], ASSISTANT]}, "QuestionError", EMPTY),
        ({"messages": [{"role": "system", "content": "Be brief."}]}, "QuestionError", EMPTY),
        ({"messages": [{"role": "user", "content": None}]}, "QuestionError", EMPTY),
        ("text", "InvalidUpdateError", "Expected dict, got text"),
        (None, "EmptyInputError", "Received no input"),
    ],
)
def test_malformed_input_is_told_what_is_wrong(
    url: str, given: object, kind: str, told: str
) -> None:
    error = post(url, input=given).json()["__error__"]
    assert error["error"] == kind
    assert told in error["message"]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"role": "wizard", "content": "?"}, "'wizard'. Use one of"),
        ({"role": "user"}, "'role' and 'content'"),
        (7, "<class 'int'>"),
    ],
)
def test_messages_that_nobody_can_read_are_refused(
    url: str, message: object, told: str, *, production: bool
) -> None:
    reply = post(url, input={"messages": [message]})
    if production:  # Before it runs: a thread that held it could not be read.
        assert (reply.status_code, reply.json()["detail"][:16]) == (422, "input.messages: ")
        assert told in reply.json()["detail"]
    else:
        assert reply.json()["__error__"]["error"] == "QuestionError"
        assert told in reply.json()["__error__"]["message"]


def test_null_is_what_is_not_set(url: str) -> None:
    for given in (INPUT | {"messages": None}, says(QUESTION) | {"question": None}):
        assert post(url, input=given, context=QUICK).json()["question"] == QUESTION


def test_what_is_langgraphs_own_is_refused_before_it_runs(url: str) -> None:
    reply = post(url, input=INPUT, config={"configurable": {"checkpoint_ns": "mine"}})
    assert reply.status_code == 422
    assert "leave it out" in reply.json()["detail"]


def test_a_stream_ends_with_the_same_error(client: Any) -> None:
    parts = list(client.runs.stream(None, "crag", input={"question": " "}, stream_mode="updates"))
    assert [part.event for part in parts] == ["metadata", "error"]
    assert parts[-1].data == {"error": "QuestionError", "message": EMPTY}


def test_a_thread_goes_on_after_an_error(client: Any) -> None:
    thread = new_thread(client)
    with pytest.raises(Exception, match="question is empty"):
        client.runs.wait(thread, "rag", input={"question": " "}, context=QUICK)
    assert client.threads.get(thread)["status"] == "error"
    assert client.runs.wait(thread, "rag", input=INPUT, context=QUICK)["answer"] == ANSWER
    assert client.threads.get(thread)["status"] == "idle"


def test_markup_in_a_document_stays_text_in_json(url: str) -> None:
    asked = {"question": "Who kept the harbour of Quellmoor?"}
    reply = post(url, assistant_id="rag", input=asked, context=QUICK)
    assert reply.headers["content-type"] == "application/json"
    state = reply.json()
    assert HOSTILE in [document["page_content"] for document in state["documents"]]
    assert state["citations"][0]["text"] == HOSTILE


def test_a_trace_of_five_megabytes_comes_through(client: Any) -> None:
    text = "Then the action is Incorrect. " * 90_000
    documents = [{"page_content": f"{at}. {text}", "metadata": {}} for at in range(2)]
    thread = client.threads.create(graph_id="rag")["thread_id"]
    client.threads.update_state(
        thread, {"question": QUESTION, "documents": documents}, as_node="retrieve"
    )
    parts = list(client.runs.stream(thread, "rag", input=None, stream_mode="values"))
    state = parts[-1].data
    assert (state["answer"], state["events"]) == (ANSWER, [])
    assert sum(len(document["page_content"]) for document in state["documents"]) > 5_000_000
    assert client.threads.get_state(thread)["values"]["documents"] == state["documents"]


def test_a_server_that_is_down_is_a_connection_error() -> None:
    with httpx.Client(base_url="http://127.0.0.1:9") as nowhere:
        graph = RemoteGraph("crag", sync_client=SyncLangGraphClient(nowhere))
        with pytest.raises(httpx.ConnectError, match="refused"):
            graph.invoke(INPUT)


def test_a_remote_graph_raises_what_the_server_says(client: Any) -> None:
    graph: Any = RemoteGraph("crag", sync_client=client)
    with pytest.raises(RemoteException, match="at least 1"):
        graph.invoke(INPUT, context={"k": 0})

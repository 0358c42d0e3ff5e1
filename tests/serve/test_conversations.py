"""Questions as a stream, and what is kept of them."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from crag.runtime.environment import Environment
from crag.serve.app import connected
from crag.testing import FakeEvaluator, FakeSearcher
from tests.conftest import HITS
from tests.repeating import times
from tests.serve.conftest import graphs
from tests.serve.serving import BEGUN, answer_of, asked, events, serving, slow

STOPPED = times(30, 300)
"""Questions that are stopped, some of them at once."""


def test_what_is_offered_and_connected_is_named_without_paths(client: httpx.Client) -> None:
    local = Environment(model="/models/small", search="wikipedia")
    assert connected(local) == {"model": "small", "web": "Wikipedia"}
    told = client.get("/api/graphs").json()
    assert (told["model"], told["web"], told["graphs"][0]["title"]) == (None, None, "Corrected")


def turns(client: httpx.Client, thread: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/api/threads/{thread}").raise_for_status().json()
    return found


def test_a_question_is_answered_as_a_stream_of_nodes_and_tokens(client: httpx.Client) -> None:
    told = asked(client, "Who wrote it?", settings={"k": 1})
    assert [name for name, _ in told][:2] == ["thread", "tasks"]
    begun = [data["name"] for name, data in told if name == "tasks" and "input" in data]
    ended = [data["name"] for name, data in told if name == "tasks" and "result" in data]
    assert begun == ended == ["open_run", "retrieve", "grade", "refine", "generate"]
    tokens = [data[0]["content"] for name, data in told if name == "messages"]
    assert "".join(tokens).startswith("Ada did")
    assert answer_of(told) == "Ada did [1]."
    name, end = told[-1]
    assert (name, end["waits"]) == ("end", False)
    (turn,) = turns(client, told[0][1])
    assert turn["checkpoint"] == end["checkpoint"]
    assert turn["values"]["documents"][0]["metadata"]["source"] == "/notes/ada.md"


def test_a_conversation_goes_on_from_its_latest_turn_or_from_an_earlier_one(
    client: httpx.Client,
) -> None:
    first = asked(client, "Who wrote it?")
    thread, checkpoint = first[0][1], first[-1][1]["checkpoint"]
    asked(client, "And who designed the engine?", thread=thread)
    asked(client, "And who published it?", thread=thread, checkpoint=checkpoint)
    third, second, root = turns(client, thread)
    assert (third["parent"], second["parent"], root["parent"]) == (checkpoint, checkpoint, None)
    said = [one["content"] for one in third["values"]["messages"] if one["type"] == "human"]
    assert said == ["Who wrote it?", "And who published it?"]


def test_conversations_are_listed_latest_first_by_what_began_them_and_are_deleted(
    client: httpx.Client,
) -> None:
    for one in client.get("/api/threads").json():
        client.delete(f"/api/threads/{one['thread']}").raise_for_status()
    older = asked(client, "Who wrote it?")[0][1]
    time.sleep(1.1)
    newer = asked(client, "Who designed it?", graph="rag")[0][1]
    listed = client.get("/api/threads").json()
    assert [(one["thread"], one["graph"], one["question"]) for one in listed] == [
        (newer, "rag", "Who designed it?"),
        (older, "crag", "Who wrote it?"),
    ]
    assert client.delete(f"/api/threads/{older}").status_code == 204
    assert client.get(f"/api/threads/{older}").status_code == 404
    assert [one["thread"] for one in client.get("/api/threads").json()] == [newer]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"question": 1}, 400, "question"),
        ({"question": "Why?", "grph": "crag"}, 400, "grph"),
        ({"question": "Why?", "thread": "../x"}, 400, "thread"),
        ({"question": "Why?", "graph": "none"}, 404, "there is no graph 'none'"),
        ({"question": "Why?", "thread": "unknown"}, 404, "no such conversation"),
        ({"question": "Why?", "checkpoint": "unknown"}, 404, "no such turn"),
        ({"resume": True}, 409, "nothing waits"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_words(
    client: httpx.Client, body: dict[str, Any], status: int, message: str
) -> None:
    reply = client.post("/api/ask", json=body)
    assert reply.status_code == status
    assert message in reply.json()["message"]


def test_a_wrong_setting_or_question_ends_the_stream_with_an_error(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    name, data = asked(client, "Why?", settings={"k": 0})[-1]
    assert (name, data["error"]) == ("error", "SettingsError")
    assert "'k' cannot be 0" in data["message"]
    told = asked(client, " ")
    assert (told[-1][0], told[-1][1]["error"]) == ("error", "QuestionError")
    assert turns(client, told[0][1]) == []
    assert not caplog.records


@pytest.fixture(scope="module")
def slow_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("slow")
    with (
        serving({"crag": slow(0.2)}, folder) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        yield client


def test_a_newer_question_on_a_conversation_takes_the_place_of_the_older(
    slow_client: httpx.Client,
) -> None:
    thread = asked(slow_client, "first")[0][1]
    older: list[Any] = []
    tab = threading.Thread(target=lambda: older.extend(asked(slow_client, "older", thread=thread)))
    tab.start()
    while not BEGUN["older node0"]:
        time.sleep(0.01)
    newer = asked(slow_client, "newer", thread=thread)
    tab.join()
    assert older[-1][0] == "error"
    assert older[-1][1]["error"] == "replaced"
    assert newer[-1][0] == "end"
    assert [one["values"]["answer"] for one in turns(slow_client, thread)] == ["newer", "first"]
    assert not BEGUN["older node4"]


def test_closing_the_connection_stops_the_run(slow_client: httpx.Client) -> None:
    """No node begins after the one that runs, and what was stopped leaves no turn."""
    threads, lock = [], threading.Lock()

    def stop(number: int) -> None:
        body = {"question": f"stopped {number}"}
        with slow_client.stream("POST", "/api/ask", json=body) as response:
            for name, data in events(response):
                if name == "thread":
                    with lock:
                        threads.append(data)
                if name == "tasks" and data["name"] == f"node{number % 3}":
                    break

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(stop, range(STOPPED)))
    time.sleep(1)
    begun = {key: count for key, count in BEGUN.items() if key.startswith("stopped")}
    assert len(threads) == STOPPED
    assert not any(key.endswith("node4") for key in begun)
    assert all(turns(slow_client, thread) == [] for thread in threads)
    assert asked(slow_client, "again", thread=threads[0])[-1][0] == "end"
    (turn,) = turns(slow_client, threads[0])
    assert [one["content"] for one in turn["values"]["messages"]] == ["again"]


def test_a_client_that_leaves_before_it_has_asked_is_no_error(
    slow_client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    place = slow_client.base_url
    head = f"POST /api/ask HTTP/1.1\r\nHost: {place.host}\r\nContent-Length: 90\r\n\r\n"
    with socket.create_connection((place.host, place.port)) as connection:
        connection.sendall(f'{head}{{"question":'.encode())
        time.sleep(0.5)
    time.sleep(0.5)
    assert not caplog.records


def test_conversations_outlive_the_server(tmp_path: Path) -> None:
    with serving(graphs(), tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        thread = asked(client, "Who wrote it?")[0][1]
    with serving(graphs(), tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert [one["thread"] for one in client.get("/api/threads").json()] == [thread]
        asked(client, "And who designed it?", thread=thread)
        assert len(turns(client, thread)) == 2


def test_a_run_that_waits_for_a_human_goes_on_after_a_restart(tmp_path: Path) -> None:
    searching = graphs(evaluator=FakeEvaluator(-0.9), searcher=FakeSearcher(HITS))
    settings = {"confirm_web": True}
    with serving(searching, tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        told = asked(client, "Who wrote it?", settings=settings)
        thread, end = told[0][1], told[-1][1]
        assert end["waits"]
        (turn,) = turns(client, thread)
        assert turn["interrupts"][0]["query"]
    with serving(searching, tmp_path) as url, httpx.Client(base_url=url, timeout=60) as client:
        told = asked(client, thread=thread, resume=True, settings=settings)
        assert told[-1] == ("end", {**told[-1][1], "waits": False})
        inner = [data["name"] for name, data in told if name.startswith("tasks|")]
        assert "search" in inner
        assert turns(client, thread)[0]["values"]["answer"]

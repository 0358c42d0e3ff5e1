"""The application of `crag serve` on a port, what a client reads of it, and a slow graph for it."""

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import uvicorn
from langgraph.graph import END, START, StateGraph, add_messages
from pydantic import SecretStr
from typing_extensions import TypedDict

from crag.runtime.environment import Environment
from crag.serve.app import create
from crag.serve.settings import ServeSettings

KEYS = {"ada": "key-of-ada-lovelace", "bob": "key-of-bob-the-builder"}
USERS = SecretStr(",".join(f"{name}={key}" for name, key in KEYS.items()))


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(graphs: Mapping[str, Any], folder: Path, **settings: Any) -> Iterator[str]:
    """Serve graphs, with an index and conversations in `folder`; yield the address.

    `settings` are those of `ServeSettings`; without a token, as by ``crag serve --no-token``.
    """
    app = create(Environment(index=str(folder / "index")), ServeSettings(**settings), graphs)
    config = uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


Event = tuple[str, Any]


def events(response: httpx.Response) -> Iterator[Event]:
    """Yield the name and the data of each event."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = line.removeprefix("data: ")
            yield name, data if name == "thread" else json.loads(data)


def asked(client: httpx.Client, question: str | None = None, **more: Any) -> list[Event]:
    """Ask, and return all events."""
    body = {**({} if question is None else {"question": question}), **more}
    with client.stream("POST", "/api/ask", json=body) as response:
        if response.status_code != 200:
            raise AssertionError(response.read())
        return list(events(response))


def answer_of(told: list[Event]) -> str:
    """Return the answer among the events of a run."""
    results = [data["result"] for name, data in told if name == "tasks" and data.get("result")]
    return str(next(one["answer"] for one in reversed(results) if one.get("answer")))


BEGUN: Counter[str] = Counter()
"""How often each node began, by question."""


class Slow(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    question: str
    answer: str


def slow(seconds: float) -> Any:
    """Return a graph of five nodes, each of which takes as long."""

    def node(name: str) -> Any:
        def run(state: Slow) -> Slow:
            messages = state.get("messages")
            question = messages[-1].content if messages else state["question"]
            BEGUN[f"{question} {name}"] += 1
            time.sleep(seconds)
            return {"answer": question, "question": question}

        return run

    graph = StateGraph(Slow)
    names = [f"node{number}" for number in range(5)]
    for name, before in zip(names, [START, *names], strict=False):
        graph.add_node(name, node(name))
        graph.add_edge(before, name)
    graph.add_edge(names[-1], END)
    return graph.compile()


if __name__ == "__main__":  # What each of several processes serves, with users by CRAG_SERVE_KEYS.
    database, folder, port = sys.argv[1:]
    app = create(
        Environment(index=f"{folder}/index"), ServeSettings(database=database), {"crag": slow(0.02)}
    )
    uvicorn.run(app, port=int(port), log_level="error", timeout_graceful_shutdown=2)

"""What the tests of the server ask, and how they look at runs."""

import time
from collections.abc import Callable
from typing import Any

from crag.graph_registry import OFFERED

QUESTION = "What happens when every retrieved document scores below the lower threshold?"
INPUT = {"question": QUESTION}
QUICK = {"k": 2}
"""Settings of runs whose documents do not matter."""
AMBIGUOUS = {"k": 2, "upper": 1.0, "lower": -1.0}
INCORRECT = {"k": 2, "upper": 1.0, "lower": 1.0}
GRAPHS = tuple(OFFERED)


def assistant(client: Any, graph: str) -> str:
    """Return the id of the assistant that the server made for a graph."""
    found = client.assistants.search(graph_id=graph)
    assert len(found) == 1
    return str(found[0]["assistant_id"])


def new_thread(client: Any) -> str:
    return str(client.threads.create()["thread_id"])


def says(text: str) -> dict[str, Any]:
    """Return the input of a chat in which a user says this."""
    return {"messages": [{"role": "user", "content": text}]}


def statuses(client: Any, thread: str) -> list[str]:
    """Return the status of each run of a thread, the first one first."""
    runs = sorted(client.runs.list(thread), key=lambda run: run["created_at"])
    return [run["status"] for run in runs]


def eventually(found: Callable[[], object], expected: object, seconds: float = 20) -> None:
    """Wait until `found()` is what is expected; fail with what it was in the end."""
    end = time.monotonic() + seconds
    while found() != expected and time.monotonic() < end:
        time.sleep(0.1)
    assert found() == expected

"""The events of `POST /api/ask`, as a client reads them."""

import json
from collections.abc import Iterator
from typing import Any

import httpx

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

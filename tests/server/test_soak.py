"""The server under mixed load: what it holds in memory stays, and nothing fails that should not."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import psutil
import pytest

from tests.repeating import times
from tests.server.asking import GRAPHS, INPUT, QUICK
from tests.torture.telling import tell

pytestmark = pytest.mark.slow
SECONDS = times(3, 30, 1800)
WARM = times(1, 10, 120)
CLIENTS = 4
SAMPLES = 14
GROWTH = 1.10 if SECONDS > 1000 else 1.5
BAD = (
    {"input": {"question": " "}},
    {"input": {"messages": [7]}},
    {"input": INPUT, "context": {"k": 0}},
    {"input": INPUT, "assistant_id": "none"},
    {"input": INPUT, "config": {"configurable": {"checkpoint_ns": "mine"}}},
)


def memory(url: str) -> int:
    """Return the megabytes that the processes of the server at this address hold."""
    told = ["--port", url.rpartition(":")[2]]
    for process in psutil.Process().children(recursive=True):
        line = process.cmdline()
        if told in (line[place : place + 2] for place in range(len(line))):
            whole = (process, *process.children(recursive=True))
            return sum(one.memory_info().rss for one in whole) >> 20
    pytest.fail(f"no process of this one listens at {url}")


def ask(client: httpx.Client, draw: random.Random) -> str:
    """Send one request of a random kind; return what is wrong with the answer, or nothing."""
    kind = draw.choice(("wait", "wait", "stream", "bad", "state", "large", "gone"))
    asked: dict[str, Any] = {"assistant_id": draw.choice(list(GRAPHS)), "input": INPUT}
    asked["context"] = QUICK
    match kind:
        case "wait":
            found = client.post("/runs/wait", json=asked)
            return (
                ""
                if found.is_success and "answer" in found.json()
                else f"{kind} {found.text[:200]}"
            )
        case "stream":
            with client.stream("POST", "/runs/stream", json=asked) as found:
                said = found.read().decode()
            return (
                "" if "event: error" not in said and "answer" in said else f"{kind} {said[-200:]}"
            )
        case "bad":
            found = client.post("/runs/wait", json=asked | draw.choice(BAD))
            told = found.status_code in {404, 422} or "__error__" in found.json()
            return "" if told else f"{kind} {found.status_code} {found.text[:200]}"
        case "state":
            thread = client.post("/threads", json={}).json()["thread_id"]
            client.post(f"/threads/{thread}/runs/wait", json=asked)
            state = client.get(f"/threads/{thread}/state")
            client.delete(f"/threads/{thread}")
            return "" if state.json()["values"]["answer"] else f"{kind} {state.text[:200]}"
        case "large":
            body = b'{"assistant_id": "crag", "input": {"question": "' + b"x" * 17 * 2**20
            headers = {"Content-Type": "application/json"}
            found = client.post("/runs/wait", content=body, headers=headers)
            return "" if found.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE else kind
    with client.stream("POST", "/runs/stream", json=asked) as found:
        next(found.iter_raw(), b"")  # And leave.
    return ""


def test_the_server_stays_as_large_as_it_was(url: str, *, production: bool) -> None:
    problems, counts, sizes = list[str](), Counter[str](), list[int]()

    def begin(graph: str) -> None:
        asked = {"assistant_id": graph, "input": INPUT, "context": QUICK}
        httpx.post(f"{url}/runs/wait", json=asked, timeout=120).raise_for_status()

    # At once and again, so that each of several processes loads its models.
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(begin, [*GRAPHS] * (CLIENTS if production else 1)))
    start = time.monotonic()

    def load(seed: int) -> None:
        draw = random.Random(seed)  # noqa: S311 - tests repeat
        with httpx.Client(base_url=url, timeout=120, trust_env=False) as client:
            while time.monotonic() - start < SECONDS:
                try:
                    problem = ask(client, draw)
                except httpx.WriteError:  # A body that is refused before its end.
                    problem = ""
                counts["requests"] += 1
                if problem:
                    problems.append(problem)

    with ThreadPoolExecutor(CLIENTS) as pool:
        running = [pool.submit(load, seed) for seed in range(CLIENTS)]
        for place in range(SAMPLES):
            at = start + WARM + (SECONDS - WARM) * place / SAMPLES
            time.sleep(max(0.0, at - time.monotonic()))
            sizes.append(memory(url))
        for one in running:
            one.result()
    sizes.append(memory(url))
    tell(f"{counts['requests']} requests, {SECONDS} s: from {WARM} s on {sizes} MB")
    first, last = sizes[0], sizes[-1]
    assert problems == []
    assert last <= first * GROWTH


def test_bodies_of_60_megabytes_leave_nothing_behind(url: str) -> None:
    def body() -> Iterator[bytes]:
        yield b'{"assistant_id": "crag", "input": {"question": "'
        for _ in range(60):
            yield b"x" * 2**20

    headers = {"Content-Type": "application/json"}
    sizes = [memory(url)]
    with httpx.Client(base_url=url, timeout=120, trust_env=False) as client:
        for _ in range(times(2, 10, 100)):
            for content in (body(), b"".join(body())):
                # The server refuses before the end, and may close the connection before it is read.
                with suppress(httpx.TransportError):
                    found = client.post("/runs/wait", content=content, headers=headers)
                    assert found.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE
            sizes.append(memory(url))
    # Less than two bodies: pages that the allocator keeps come and go, some of them late.
    most, until = sizes[0] + 100, time.monotonic() + 20
    while (last := memory(url)) > most and time.monotonic() < until:
        time.sleep(0.5)
    tell(f"{2 * (len(sizes) - 1)} bodies of 60 MB: {sizes} MB, then {last}")
    assert last <= most, sizes

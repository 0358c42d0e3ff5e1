"""Several processes over one PostgreSQL: order on a thread, and kills."""

import asyncio
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from crag.serve.storage import storage_in
from tests.postgres import postgres
from tests.repeating import times
from tests.serve.serving import Event, asked, events, free_port

USERS, PROCESSES, KILLS = 20, 3, times(3, 30)
KEYS = {f"user{number}": f"key-of-user-{number}-0123456789" for number in range(USERS)}
ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.nightly]


class Processes:
    """Processes that serve one database, each on a port of its own."""

    def __init__(self, database: str, folder: Path) -> None:
        self._told = [database, str(folder)]
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for _ in range(PROCESSES):
            self.start(free_port())

    def start(self, port: int) -> None:
        pairs = ",".join(f"{name}={key}" for name, key in KEYS.items())
        command = [sys.executable, "-m", "tests.serve.serving", *self._told, str(port)]
        self.running[f"http://127.0.0.1:{port}"] = subprocess.Popen(
            command, env=os.environ | {"CRAG_SERVE_KEYS": pairs}, cwd=ROOT
        )

    def wait_for(self, url: str) -> None:
        for _ in range(600):
            with suppress(httpx.TransportError):
                httpx.get(f"{url}/ok")
                return
            assert self.running[url].poll() is None, "a process ended"
            time.sleep(0.1)
        raise AssertionError(url)

    def kill(self, url: str) -> None:
        """Kill a process, as a machine that loses its power does, and start it again."""
        self.running[url].kill()
        self.running[url].wait()
        self.start(int(url.rpartition(":")[2]))
        self.wait_for(url)

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(scope="module")
def processes(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    running = Processes(database, tmp_path_factory.mktemp("several"))
    try:
        for url in running.running:
            running.wait_for(url)
        yield running
    finally:
        running.end()


def client(url: str, user: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"x-api-key": KEYS[user]}, timeout=60)


def asking_of(client: httpx.Client, question: str, more: dict[str, Any]) -> Iterator[Event]:
    """Yield the events of an answer as they come."""
    body = {"question": question, **more}
    with client.stream("POST", "/api/ask", json=body) as response:
        assert response.status_code == 200, response.read()
        yield from events(response)


def questions(turn: dict[str, Any]) -> list[str]:
    return [one["content"] for one in turn["values"]["messages"]]


def test_of_questions_on_one_thread_at_two_processes_the_newest_wins(processes: Processes) -> None:
    first, second, _ = processes.running
    with client(first, "user0") as one, client(second, "user0") as other:
        thread = asked(one, "begin")[0][1]
        with ThreadPoolExecutor(8) as pool:
            told = list(pool.map(
                lambda number: asked((one, other)[number % 2], f"q{number}", thread=thread),
                range(8),
            ))  # fmt: skip
        ended = [f"q{number}" for number, one in enumerate(told) if one[-1][0] == "end"]
        others = {one[-1][1]["error"] for one in told if one[-1][0] == "error"}
        turns = other.get(f"/api/threads/{thread}").json()
    assert ended
    assert others == {"replaced"}
    assert sorted(questions(turns[0])) == ["begin", *ended]
    assert len(turns) == len(ended) + 1
    assert all(newer["parent"] == older["checkpoint"]
               for newer, older in pairwise(turns))  # fmt: skip


async def test_a_thread_is_free_whenever_a_run_on_it_is_cancelled(database: str) -> None:
    async with storage_in(database) as storage, storage_in(database) as other_process:

        async def answer() -> None:
            async with storage.turn("thread"):
                await asyncio.sleep(0.001)

        for number in range(100):
            task = asyncio.create_task(answer())
            await asyncio.sleep(number * 5e-5)
            task.cancel()
            await asyncio.wait({task})
            async with asyncio.timeout(10), other_process.turn("thread"):
                assert task.done()


def test_what_was_answered_outlives_kills(processes: Processes) -> None:
    """Clients that ask again after a crash have each question once, and nobody else's."""
    ending, lock = threading.Event(), threading.Lock()
    shown: dict[tuple[str, str], list[str]] = {}
    told: Counter[str] = Counter()

    def ask(user: str) -> None:
        chance, thread, number = random.Random(user), "", 0  # noqa: S311 - no secret
        while not ending.is_set():
            url, question = chance.choice(list(processes.running)), f"{user} asks {number}"
            try:
                with client(url, user) as one:
                    # As the page does after a crash: is it answered, and only not told?
                    turns = one.get(f"/api/threads/{thread}").json() if thread else []
                    if not (turns and questions(turns[0])[-1:] == [question]):
                        more = {"thread": thread} if thread else {}
                        for name, data in asking_of(one, question, more):
                            thread = data if name == "thread" else thread
                            end = name
                        told[end] += 1
                        if end != "end":
                            continue
            except (httpx.HTTPError, AssertionError) as error:
                told[type(error).__name__] += 1  # Its process was killed.
                time.sleep(0.1)
                continue
            with lock:
                shown.setdefault((user, thread), []).append(question)
            number += 1
            thread = "" if number % 5 == 0 else thread

    with ThreadPoolExecutor(USERS) as pool:
        asking = [pool.submit(ask, user) for user in KEYS]
        chance = random.Random(0)  # noqa: S311 - no secret
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.2, 1))
            processes.kill(chance.choice(list(processes.running)))
        ending.set()
        for one in asking:
            one.result()
    url, strangers = next(iter(processes.running)), list(KEYS)
    for (user, thread), answered in shown.items():
        with client(url, user) as one:
            turns = one.get(f"/api/threads/{thread}").raise_for_status().json()
        kept = questions(turns[0])
        assert [question for question in kept if question in answered] == answered
        assert len(kept) == len(set(kept)), "a question was kept twice"
        with client(url, strangers[strangers.index(user) - 1]) as other:
            assert other.get(f"/api/threads/{thread}").status_code == 404
    sys.stdout.write(f"\n{KILLS} kills, {dict(told)}, {len(shown)} conversations\n")
    assert told["end"] > KILLS

"""Processes are killed and PostgreSQL is stopped under load: nothing acknowledged is lost."""

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import APIStatusError

from tests.page.serving import free_port, wait_for
from tests.postgres import Postgres, running
from tests.production.walking import STEPS

pytestmark = [pytest.mark.slow, pytest.mark.production]
KILLS, PAUSES, USERS, WORKERS = 20, 12, 6, 3
AWAY, LEASE = 10.0, 3
_PATIENCE = 180.0
_AGAIN = (httpx.HTTPError, APIStatusError)


class Server:
    """The processes of a server, on one port through all restarts."""

    def __init__(self, database: str, log: Path) -> None:
        self.port, self.log = free_port(), log
        self.url = f"http://127.0.0.1:{self.port}"
        self._variables = os.environ | {
            "CRAG_SERVE_DATABASE": database, "CRAG_SERVE_LEASE_SECONDS": str(LEASE),
            "CRAG_SERVE_ATTEMPTS": str(KILLS + PAUSES), "CRAG_SERVE_QUEUE_SECONDS": "600",
        }  # fmt: skip
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "uvicorn", "--factory", "tests.production.walking:walking"]
        command += ["--port", str(self.port), "--workers", str(WORKERS), "--no-access-log"]
        command += ["--timeout-graceful-shutdown", "3", "--timeout-worker-healthcheck", "60"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self._variables, stdout=log, stderr=log, cwd=Path(__file__).parents[2]
            )
        wait_for(self.url, self._process)

    def kill_one(self, chance: random.Random) -> None:
        """Kill a process that serves; the one that starts them starts another."""
        children = psutil.Process(self._process.pid).children()
        for one in chance.sample(children, len(children)):
            with suppress(psutil.NoSuchProcess):  # It has ended by itself, or is no server.
                if "multiprocessing.spawn" in " ".join(one.cmdline()):
                    one.kill()
                    return

    @contextmanager
    def one_stopped(self, chance: random.Random) -> Iterator[None]:
        """Let a process that serves stand still, as one that is swapped out or frozen does."""
        children = psutil.Process(self._process.pid).children()
        serving = [one for one in children if "multiprocessing.spawn" in " ".join(one.cmdline())]
        one = chance.choice(serving)
        one.suspend()
        try:
            yield
        finally:
            one.resume()

    def kill_all(self) -> None:
        """Kill all processes at once, as a machine that loses its power does."""
        with suppress(psutil.NoSuchProcess):
            processes = psutil.Process(self._process.pid).children(recursive=True)
            self._process.kill()
            for one in processes:
                one.kill()
        self._process.wait(60)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


class Users:
    """Users who ask one question after the other, and remember what the server acknowledged."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.runs: dict[str, str] = {}
        """Acknowledged runs and their threads."""
        self.answers: dict[str, Any] = {}
        """Acknowledged answers, by thread."""
        self.ending = threading.Event()

    @contextmanager
    def asking(self) -> Iterator[None]:
        with ThreadPoolExecutor(USERS) as pool:
            asking = [pool.submit(self._ask) for _ in range(USERS)]
            try:
                yield
            finally:
                self.ending.set()
            for one in asking:
                one.result()

    def _ask(self) -> None:
        with get_sync_client(url=self.url, timeout=30) as client:
            while not self.ending.is_set():
                with suppress(*_AGAIN):  # What was not acknowledged may be lost.
                    thread = client.threads.create()["thread_id"]
                    run = client.runs.create(thread, "crag", input={"question": thread})
                    self.runs[run["run_id"]] = thread
                    state = client.runs.join(thread, run["run_id"])
                    if state:
                        self.answers[thread] = state

    def wait_for_an_answer(self) -> None:
        """Wait until one more answer is acknowledged."""
        end, before = time.monotonic() + _PATIENCE, len(self.answers)
        while len(self.answers) == before:
            assert time.monotonic() < end
            time.sleep(0.05)

    def check(self) -> None:
        """Every acknowledged run ends; its thread has made each step once, and has the answer."""
        with get_sync_client(url=self.url, timeout=120) as client:
            for run, thread in self.runs.items():
                patiently(lambda run=run, thread=thread: client.runs.join(thread, run))
                assert client.runs.get(thread, run)["status"] == "success"
                values: Any = client.threads.get_state(thread)["values"]
                assert values["steps"] == list(STEPS)
                assert values["answer"] == f"{thread} {STEPS[-1]}"
                assert client.threads.get(thread)["status"] == "idle"
                assert self.answers.get(thread, values) == values


def patiently(call: Callable[[], Any]) -> Any:
    """Call until it works: the processes may still be starting."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return call()
        except _AGAIN:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


@pytest.fixture
def database() -> Iterator[Postgres]:
    with running() as postgres:
        yield postgres


@pytest.fixture
def server(database: Postgres, tmp_path: Path) -> Iterator[Server]:
    found = Server(database.url, tmp_path / "server.log")
    try:
        yield found
        found.stop()
    finally:
        found.kill_all()


def test_twenty_random_kills_lose_nothing(server: Server) -> None:
    chance, users = random.Random(20), Users(server.url)  # noqa: S311 - no secret
    with users.asking():
        for number in range(KILLS):
            users.wait_for_an_answer()
            time.sleep(chance.uniform(0, 1.5))
            if number % 5:
                server.kill_one(chance)
            else:
                server.kill_all()
                server.start()
    assert len(users.answers) >= KILLS
    users.check()


def test_processes_that_stand_still_for_longer_than_their_lease_overwrite_nothing(
    server: Server,
) -> None:
    chance, users = random.Random(35), Users(server.url)  # noqa: S311 - no secret
    with users.asking():
        for _ in range(PAUSES):
            users.wait_for_an_answer()
            with server.one_stopped(chance):
                time.sleep(LEASE * 2.5)
            time.sleep(chance.uniform(0, 1))
    users.check()


def test_without_postgresql_for_ten_seconds_nothing_is_lost(
    server: Server, database: Postgres
) -> None:
    users = Users(server.url)
    with users.asking():
        time.sleep(3)
        before = len(users.runs)
        database.stop()
        time.sleep(1)
        reply = httpx.get(f"{server.url}/ok", timeout=60)
        assert (reply.status_code, reply.headers["Retry-After"]) == (503, "5")
        assert "try again" in reply.json()["detail"]
        time.sleep(AWAY - 1)
        database.start()
        patiently(lambda: httpx.get(f"{server.url}/ok").raise_for_status())
        time.sleep(3)
    assert before
    assert len(users.runs) > before
    users.check()


def test_a_stream_goes_on_at_another_process(server: Server) -> None:
    """The SDK connects again by itself, and gets each part once."""
    with get_sync_client(url=server.url, timeout=60) as client:
        thread = client.threads.create()["thread_id"]
        stream = client.runs.stream(
            thread, "crag", input={"question": "Why?"}, stream_mode="updates"
        )
        steps: list[str] = []
        for part in stream:
            if part.event == "updates":
                steps += part.data
            if steps == ["first"]:
                server.kill_all()
                server.start()
        assert steps == list(STEPS)

"""Processes are killed and PostgreSQL is stopped under load: nothing acknowledged is lost."""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from langgraph_sdk.errors import NotFoundError

from tests.page.serving import free_port, wait_for
from tests.postgres import Postgres, running
from tests.production.walking import STEPS
from tests.repeating import times

pytestmark = [pytest.mark.slow, pytest.mark.production]
KILLS, PAUSES, ABSENCES = times(20, 20, 50), times(12, 12, 100), times(1, 1, 5)
USERS, WORKERS = 6, 3
AWAY, LEASE = 10.0, 3
_PATIENCE = times(180, 180, 1800)


class Server:
    """The processes of a server, on one port through all restarts."""

    def __init__(self, database: str, log: Path) -> None:
        self.port, self.log = free_port(), log
        self.url = f"http://127.0.0.1:{self.port}"
        self._variables = os.environ | {
            "CRAG_SERVE_DATABASE": database, "CRAG_SERVE_LEASE_SECONDS": str(LEASE),
            "CRAG_SERVE_ATTEMPTS": str(KILLS + PAUSES), "CRAG_SERVE_QUEUE_SECONDS": "600",
            "CRAG_SERVE_KEYS": ",".join(f"user{number}={key(number)}" for number in range(USERS)),
            "CRAG_SERVE_THREADS_PER_MINUTE": "10000",
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
            psutil.wait_procs(processes, 60)  # Until then they have the port.
        self._process.wait(60)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def key(number: int) -> str:
    """Return the key of a user."""
    return f"key-of-user-{number}-0123456789"


class Users:
    """Users who ask one question after the other, and remember what the server acknowledged."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.runs: dict[str, tuple[int, str]] = {}
        """Acknowledged runs, with their users and threads."""
        self.answers: dict[str, Any] = {}
        """Acknowledged answers, by thread."""
        self.told: Counter[str] = Counter()
        """How requests failed: by a status, or by the error of a connection."""
        self.ending = threading.Event()

    def client(self, number: int) -> SyncLangGraphClient:
        return get_sync_client(url=self.url, api_key=key(number), timeout=600)

    @contextmanager
    def asking(self) -> Iterator[None]:
        with ThreadPoolExecutor(USERS) as pool:
            asking = [pool.submit(self._ask, number) for number in range(USERS)]
            try:
                yield
            finally:
                self.ending.set()
            for one in asking:
                one.result()

    def _ask(self, number: int) -> None:
        with self.client(number) as client:
            while not self.ending.is_set():
                with self.failing():  # What was not acknowledged may be lost.
                    thread = client.threads.create()["thread_id"]
                    run = client.runs.create(thread, "crag", input={"question": thread})
                    self.runs[run["run_id"]] = number, thread
                    state = client.runs.join(thread, run["run_id"])
                    if state:
                        self.answers[thread] = state

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Let a request fail with its connection, or because the database is away."""
        try:
            yield
        except httpx.HTTPStatusError as error:
            reply = error.response
            self.told[str(reply.status_code)] += 1
            away = reply.status_code == httpx.codes.SERVICE_UNAVAILABLE
            if not away or "Retry-After" not in reply.headers:
                raise
        except httpx.HTTPError as error:
            self.told[type(error).__name__] += 1

    def patiently(self, call: Callable[[], Any]) -> Any:
        """Call until it works: the processes may still be starting."""
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            with self.failing():
                return call()
            time.sleep(0.2)
        return call()

    def wait_for_an_answer(self) -> None:
        """Wait until one more answer is acknowledged."""
        end, before = time.monotonic() + _PATIENCE, len(self.answers)
        while len(self.answers) == before:
            assert time.monotonic() < end
            time.sleep(0.05)

    def check(self) -> None:
        """Every run ends, its thread has made each step once, and only its user can see it."""
        with ExitStack() as stack:
            clients = [stack.enter_context(self.client(number)) for number in range(USERS)]
            for run, (number, thread) in self.runs.items():
                client = clients[number]
                self.patiently(lambda c=client, t=thread, r=run: c.runs.join(t, r))
                assert client.runs.get(thread, run)["status"] == "success"
                values: Any = client.threads.get_state(thread)["values"]
                assert values["steps"] == list(STEPS)
                assert values["answer"] == f"{thread} {STEPS[-1]}"
                assert client.threads.get(thread)["status"] == "idle"
                assert self.answers.get(thread, values) == values
                with pytest.raises(NotFoundError):
                    clients[number - 1].threads.get_state(thread)

    def report(self, what: str) -> None:
        """Print what was counted; `make torture-server` shows it."""
        print(  # noqa: T201 - `make torture-server` shows the counts
            f"\n{what}: {len(self.runs)} runs acknowledged, {len(self.answers)} answers at once, "
            f"none lost, overwritten, stuck or seen by another user; requests failed by "
            f"{dict(self.told) or 'nothing'}"
        )


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


def test_random_kills_lose_nothing(server: Server) -> None:
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
    users.report(f"{KILLS} kills")


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
    users.report(f"{PAUSES} times SIGSTOP for {LEASE * 2.5:g} s, with leases of {LEASE} s")


def test_without_postgresql_for_ten_seconds_nothing_is_lost(
    server: Server, database: Postgres
) -> None:
    users = Users(server.url)
    with users.asking():
        for _ in range(ABSENCES):
            users.wait_for_an_answer()
            before = len(users.runs)
            database.stop()
            time.sleep(1)
            reply = httpx.get(f"{server.url}/ok", timeout=60)
            assert (reply.status_code, reply.headers["Retry-After"]) == (503, "5")
            assert "try again" in reply.json()["detail"]
            time.sleep(AWAY - 1)
            database.start()
            users.patiently(lambda: httpx.get(f"{server.url}/ok").raise_for_status())
            users.wait_for_an_answer()
            assert len(users.runs) > before
    users.check()
    users.report(f"PostgreSQL away {ABSENCES} times for {AWAY:g} s")


def test_a_stream_goes_on_at_another_process(server: Server) -> None:
    """The SDK connects again by itself, and gets each part once."""
    with Users(server.url).client(0) as client:
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

r"""Measure the production server: users who ask one question after the other, and nothing else.

    python papers/measurements/server_load.py [--users 200] [--seconds 300] [--workers 1 2 4] \
        [--evaluator 0]

Server, PostgreSQL and users share this machine, on loopback. The graph is `crag` with parts that
take time and no computing: a chat model of 300 ms, and an evaluator that takes as long as
`--evaluator` says, one question at a time in each process, as if each had one core for it. Without
it the table shows the work of the server itself, which the processes share; with it, what more
processes add where each has a core of its own. Memory is that of the server's processes: after the
first minute, or a fifth of a shorter run, and at the end. Processor time is that of the server, of
PostgreSQL and of the users, for each question.
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil  # type: ignore[import-untyped]
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError
from starlette.applications import Starlette

from crag.cli.trial_postgres import postgres_in
from crag.graph import build_crag
from crag.page.rules import Rules
from crag.parts import Parts
from crag.server.app import create
from crag.testing import FakeEvaluator, FakeRetriever

MODEL = 0.3
"""Seconds."""
EVALUATOR = "SERVER_LOAD_EVALUATOR"
"""Variable that tells the server's processes how many seconds their evaluator takes."""
TEXT = "Ada Lovelace wrote the first published program. It was for the Analytical Engine. "


class Result(NamedTuple):
    """One run of the benchmark."""

    workers: int
    seconds: list[float]
    """How long each question took."""
    errors: int
    memory: tuple[float, float]
    """MB after the first minute, and at the end."""
    spent: tuple[float, float, float]
    """Seconds of processor time of the server, of PostgreSQL and of the users."""
    load: float
    """Processes of the whole machine that wanted a core, on average of the last five minutes."""


class SlowModel(BaseChatModel):
    """Answers after a while, without a thread."""

    @property
    def _llm_type(self) -> str:
        return "slow"

    def _generate(
        self,
        messages: list[BaseMessage],  # noqa: ARG002 - the name is LangChain's
        *_: Any,
        **__: Any,
    ) -> ChatResult:
        time.sleep(MODEL)
        return _answer()

    async def _agenerate(
        self,
        messages: list[BaseMessage],  # noqa: ARG002 - the name is LangChain's
        *_: Any,
        **__: Any,
    ) -> ChatResult:
        await asyncio.sleep(MODEL)
        return _answer()


class SlowEvaluator(FakeEvaluator):
    """Scores after a while, one question after the other."""

    def __init__(self, seconds: float) -> None:
        super().__init__(0.9)
        # A question asks it twice: for its documents, and for their strips.
        self._seconds, self._core = seconds / 2, threading.Lock()

    def score(self, question: str, texts: Any) -> list[float]:
        """Return the same for all texts."""
        if self._seconds:
            with self._core:
                time.sleep(self._seconds)
        scores = super().score(question, texts)
        self.calls.clear()  # What a fake remembers would count as the server's memory.
        return scores


class ForgetfulRetriever(FakeRetriever):
    """Finds the same documents, and forgets what for."""

    def _get_relevant_documents(self, query: str, **options: Any) -> list[Document]:
        found = super()._get_relevant_documents(query, **options)
        self.questions.clear()
        return found


def _answer() -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=AIMessage("Ada Lovelace did [1]."))])


def slow() -> Starlette:
    """Build the server's application, in each of its processes."""
    documents = [Document(TEXT * 5, metadata={"source": f"{at}.md"}) for at in range(10)]
    evaluator = SlowEvaluator(float(os.environ[EVALUATOR]))
    parts = Parts(
        retriever=ForgetfulRetriever(documents=documents), evaluator=evaluator, model=SlowModel()
    )
    return create(graphs={"crag": build_crag(parts)}, rules=Rules())


@contextmanager
def serving(workers: int, variables: Mapping[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """Run the server; yield its URL and its first process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "--factory",
        "server_load:slow",
        "--port",
        str(port),
    ]
    command += ["--workers", str(workers), "--log-level", "error", "--no-access-log"]
    command += ["--timeout-graceful-shutdown", "3", "--timeout-worker-healthcheck", "60"]
    environment = os.environ | variables
    with subprocess.Popen(  # noqa: S603 - our own interpreter, and no shell
        command, cwd=Path(__file__).parent, env=environment
    ) as server:
        try:
            url = f"http://127.0.0.1:{port}"
            while not answers(url):
                assert server.poll() is None
                time.sleep(0.2)
            yield url, psutil.Process(server.pid)
        finally:
            server.terminate()


def answers(url: str) -> bool:
    """Whether the server is up."""
    try:
        return httpx.get(f"{url}/ok").is_success
    except httpx.TransportError:
        return False


def family(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and all that it started."""
    return [process, *process.children(recursive=True)]


def megabytes(processes: Iterable[psutil.Process]) -> float:
    """Return how much memory they hold."""
    return float(sum(one.memory_info().rss for one in processes)) / 2**20


def processor(processes: Iterable[psutil.Process]) -> float:
    """Return the seconds that they have computed, with those of children that have ended."""
    return float(sum(sum(one.cpu_times()[:4]) for one in processes))


def postgres_of(folder: Path) -> psutil.Process:
    """Return the first process of the PostgreSQL server on a folder."""
    return psutil.Process(int((folder / "postmaster.pid").read_text().split()[0]))


async def asked(
    url: str, users: int, seconds: float, memory: Callable[[], float]
) -> tuple[list[float], int, tuple[float, float]]:
    """Let users ask until the time is over; return times, errors, and memory early and late."""
    took: list[float] = []
    errors, end, early = 0, time.monotonic() + seconds, 0.0

    async def user(number: int) -> None:
        nonlocal errors
        await asyncio.sleep(number / users)  # Not all at the same moment.
        async with get_client(url=url, timeout=120) as client:
            while time.monotonic() < end:
                begun = time.perf_counter()
                try:
                    state: Any = await client.runs.wait(
                        None, "crag", input={"question": "Who wrote the first program?"}
                    )
                    assert state["answer"]
                except (httpx.HTTPError, APIStatusError, AssertionError) as error:
                    print(f"{type(error).__name__}: {error}", file=sys.stderr)
                    errors += 1
                took.append(time.perf_counter() - begun)

    async def watch() -> None:
        nonlocal early
        await asyncio.sleep(min(60, seconds / 5))
        early = memory()

    async with asyncio.TaskGroup() as group:
        group.create_task(watch())
        for number in range(users):
            group.create_task(user(number))
    return took, errors, (early, memory())


def measured(workers: int, users: int, seconds: float, evaluator: float) -> Result:
    """Run a new PostgreSQL and a server of so many processes."""
    with tempfile.TemporaryDirectory(prefix="crag-load-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with postgres_in(Path(folder) / "data") as database:
            jobs = str(-(-users // workers))
            told = {"CRAG_SERVE_DATABASE": database, "CRAG_SERVE_JOBS": jobs}
            told |= {"CRAG_SERVE_CONNECTIONS": str(80 // workers), EVALUATOR: str(evaluator)}
            with serving(workers, told) as (url, server):
                postgres = postgres_of(Path(folder) / "data")
                watched = (server, postgres, psutil.Process())

                def spent() -> list[float]:
                    # The users started the other two, which count for themselves.
                    own = processor([watched[2]])
                    return [*(processor(family(one)) for one in watched[:2]), own]

                before = spent()
                took, errors, memory = asyncio.run(
                    asked(url, users, seconds, lambda: megabytes(family(server)))
                )
                after = spent()
    cost = (after[0] - before[0], after[1] - before[1], after[2] - before[2])
    return Result(workers, took, errors, memory, cost, os.getloadavg()[1])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--evaluator", type=float, default=0.0, help="seconds for one question")
    given = parser.parse_args()
    print(
        "| processes | questions/s | p50 s | p95 s | p99 s | errors | MB early | MB at the end |",
        end="",
    )
    print(" server ms | PostgreSQL ms | users ms | load |")
    print("|---:" * 12 + "|")
    for workers in given.workers:
        found = measured(workers, given.users, given.seconds, given.evaluator)
        cut = statistics.quantiles(found.seconds, n=100)
        early, late = found.memory
        each = [seconds * 1000 / len(found.seconds) for seconds in found.spent]
        print(
            f"| {workers} | {len(found.seconds) / given.seconds:.1f} | {cut[49]:.2f} | "
            f"{cut[94]:.2f} | {cut[98]:.2f} | {found.errors} | {early:.0f} | {late:.0f} | "
            f"{each[0]:.0f} | {each[1]:.0f} | {each[2]:.0f} | {found.load:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

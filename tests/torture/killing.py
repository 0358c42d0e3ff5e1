"""Processes that are made to be killed, forked from one that has loaded what they need."""

import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from io import StringIO
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from crag.graph import build_crag
from crag.parts import Parts
from crag.testing import FakeChatModel, FakeEvaluator, FakeReader, FakeRetriever, FakeSearcher
from tests.conftest import DOCUMENTS, HITS
from tests.trained import tiny_bert

_FORKS = get_context("forkserver")
_FORKS.set_forkserver_preload([
    "tests.torture.killing", "crag.papers.commands", "crag.papers.training.trainer",
    "crag.papers.experiments.command",
    "matplotlib.pyplot", "langchain_openai", "sklearn.linear_model", "peft",
    "transformers.trainer", "transformers.models.bert.modeling_bert",
])  # fmt: skip
_PATIENCE = 300.0
SECONDS = 0.02
"""How long each part takes, so that a kill meets a run within any of its steps."""


class Process:
    """A process that tells what it has done."""

    def __init__(self, work: Callable[..., None], *arguments: object) -> None:
        self._told, telling = _FORKS.Pipe(duplex=False)
        self._process = _FORKS.Process(target=work, args=(telling, *arguments))
        self._process.start()
        telling.close()

    def ended(self) -> Any:
        """Wait for its end, which has to be a good one; return the last of what it told."""
        told = self._all_told()
        self._process.join(_PATIENCE)
        assert self._process.exitcode == 0
        return told[-1] if told else None

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until something is true, or the process has ended."""
        until = time.monotonic() + _PATIENCE
        while self._process.is_alive() and not condition():
            assert time.monotonic() < until
            time.sleep(0.002)

    def wait_until_told(self) -> None:
        """Wait for the first word."""
        assert self._told.poll(_PATIENCE)

    def kill(self, *, may_have_ended: bool = False) -> list[Any]:
        """Kill it while it works; return all that it told."""
        self._process.kill()
        self._process.join()
        ends = {-signal.SIGKILL, 0} if may_have_ended else {-signal.SIGKILL}
        assert self._process.exitcode in ends, "it ended before it could be killed"
        return self._all_told()

    def _all_told(self) -> list[Any]:
        told = []
        with self._told:
            try:
                while True:
                    told.append(self._told.recv())
            except EOFError:  # A word that a kill cut off was not told.
                return told


def moments(kills: int, seed: int, longest: float) -> Iterator[float]:
    """Yield random numbers of seconds."""
    draw = random.Random(seed)  # noqa: S311 - moments, no secrets
    for _ in range(kills):
        yield draw.uniform(0, longest)


def command(telling: Connection, variables: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Run `crag` as its entry point does; tell what it prints."""
    from crag.papers.command import main

    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["crag", *arguments]
    with redirect_stdout(StringIO()) as out:
        try:
            main()
        finally:
            telling.send(out.getvalue())


class SlowModel(FakeChatModel):
    """A chat model that takes its time."""

    def _reply(self, messages: Any) -> str:
        time.sleep(SECONDS)
        return super()._reply(messages)


def _slow_score(question: str, text: str) -> float:
    del question, text
    time.sleep(SECONDS / 4)
    return 0.0


def slow_parts() -> Parts:
    """Return parts that lead to both branches."""
    return Parts(
        retriever=FakeRetriever(documents=list(DOCUMENTS)),
        evaluator=FakeEvaluator(_slow_score),
        model=SlowModel(replies=["Ada Lovelace did [1]."]),
        searcher=FakeSearcher(HITS),
        reader=FakeReader({HITS[0].url: ["Ada Lovelace wrote the first published program."]}),
    )


def checkpoints(location: str) -> AbstractContextManager[BaseCheckpointSaver[Any]]:
    """Open the checkpointer of a file, or of a database in PostgreSQL."""
    if location.startswith("postgresql:"):
        return PostgresSaver.from_conn_string(location)
    return SqliteSaver.from_conn_string(location)


def thread(number: int) -> Any:
    """Return the configuration of a thread."""
    return {"configurable": {"thread_id": str(number)}}


@contextmanager
def graph_on(location: str) -> Iterator[Any]:
    """Open a graph whose runs are kept."""
    with checkpoints(location) as keeper:
        yield build_crag(slow_parts(), checkpointer=keeper)


def steps(graph: Any, asked: Mapping[str, Any] | None, number: int) -> Iterator[str]:
    """Run a thread; yield the name of each node that has ended, when its step is stored."""
    for update in graph.stream(asked, thread(number), stream_mode="updates", durability="sync"):
        yield from (node for node in update if not node.startswith("__"))


def asking(telling: Connection, location: str, first: int, question: str) -> None:
    """Ask in one thread after the other; tell thread and node, and thread and "" at its end."""
    with graph_on(location) as graph:
        for number in count(first):
            for node in steps(graph, {"question": question}, number):
                telling.send((number, node))
            telling.send((number, ""))


def evaluating(telling: Connection, folder: Path, question: str, texts: Sequence[str]) -> None:
    """Tell what an evaluator scores."""
    from crag.evaluators import load_evaluator

    telling.send(load_evaluator(str(folder)).score(question, texts))


def making_base(telling: Connection, folder: Path) -> None:
    """Make a tiny model to train."""
    telling.send(str(tiny_bert(folder)))

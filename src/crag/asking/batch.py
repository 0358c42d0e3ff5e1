"""Answer many questions into a file: `crag batch`, in this process or on Ray.

Each answer is on disk before it counts as given, so a run that was killed goes on with the others.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, NotRequired

from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from crag.asking.budget import Budget, Meter
from crag.asking.evaluation import Question
from crag.asking.lines import Lines, Status
from crag.errors import DataError
from crag.events import Event, redact
from crag.factory import choose_parts
from crag.graph_registry import graph_named
from crag.runtime.attempt import Attempt
from crag.runtime.environment import Environment, Shared
from crag.runtime.ray_cluster import cluster, cores, load_ray, on_workers
from crag.settings import settings_from_text
from crag.state import Certainty

_DECIDING = (
    "index", "embedding_model", "reranker", "evaluator", "evaluator_fallback", "model",
    "openai_base_url", "prompts", "framing", "reflection", "reflection_model", "search",
)  # fmt: skip
"""Fields of the environment that change answers."""
Graph = CompiledStateGraph[Any, Any, Any, Any]


class Cited(TypedDict):
    """A source of an answer."""

    number: int
    title: str
    url: str
    text: str


class BatchAnswer(TypedDict):
    """What came of one question."""

    key: str
    """Names the question with its id: one that is there is not asked again."""
    run: str
    """Names method, settings and parts: a file holds the answers of one run."""
    id: str
    question: str
    status: Status
    error: str
    """Why it failed; empty otherwise."""
    answer: str
    certainty: NotRequired[Certainty | None]
    """None if it failed; rows of older versions lack it."""
    action: str
    citations: list[Cited]
    events: list[Event]
    usage: dict[str, Any]
    """Calls and tokens, and their `cost` where the settings have prices."""
    seconds: float


class Asking(NamedTuple):
    """How questions are answered, as it is told to workers; it can be hashed."""

    environment: Shared
    method: str
    """Of `crag.graph_registry`."""
    settings: tuple[tuple[str, object], ...]

    @property
    def run(self) -> str:
        """Name what the answers depend on, in sixteen hexadecimal digits."""
        parts = {name: str(value) for name, value in self.environment if name in _DECIDING}
        told = [self.method, sorted(map(str, self.settings)), sorted(parts.items())]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def key(self, question: Question) -> str:
        """Name a question."""
        told = f"{question.id}\0{question.question}".encode()
        return hashlib.sha256(told).hexdigest()[:16]


@dataclass
class Ended:
    """How a run ended."""

    questions: int
    resumed: int = 0
    """Answered by an earlier run."""
    statuses: dict[str, int] = field(default_factory=dict)
    """Of the answers of this run."""
    usage: dict[str, float] = field(default_factory=dict)
    """Spent by this run."""
    stopped: str = ""
    """The limit that ended it early."""


class AnswerFile(Lines[BatchAnswer]):
    """The answers of one run.

    Raises:
        DataError: the file holds something else, or answers of a run with other settings.
    """

    def __init__(self, path: Path, run: str) -> None:
        super().__init__(path, BatchAnswer.__required_keys__, "an answer of `crag batch`")
        if any(row["run"] != run for row in self.rows.values()):
            self._file.close()
            problem = (
                "holds answers of another method, other settings or other parts: use another "
                "--output, or go on with those"
            )
            raise DataError(path, problem)


def answer_all(  # noqa: PLR0913 - what a run is told
    questions: Sequence[Question],
    asking: Asking,
    answers: AnswerFile,
    *,
    budget: Budget,
    concurrency: int = 4,
    ray: str | None = None,
    again: bool = False,
    progress: Callable[[int, int, float], object] = lambda *_: None,
) -> Ended:
    """Answer what has no answer yet, `concurrency` at a time; with `again`, failures once more.

    With `ray`, the address of a cluster, in its workers: as many as its cores, or `concurrency` of
    this machine's. `progress` receives how many are done, of how many, and what they cost.

    Raises:
        CragError: a part cannot be used, or a question ended several workers.
    """
    distinct = {asking.key(one): one for one in questions}
    done = {
        key
        for key, row in answers.rows.items()
        if key in distinct and not (again and row["status"] == "failed")
    }
    ended, meter = Ended(len(distinct), resumed=len(done)), Meter(budget)

    def on_answer(row: BatchAnswer) -> None:
        answers.append(row)
        usage = row["usage"]
        meter.calls += usage.get("llm_calls", 0)
        meter.spend(usage)
        for name, number in usage.items():
            ended.usage[name] = ended.usage.get(name, 0) + number
        ended.statuses[row["status"]] = ended.statuses.get(row["status"], 0) + 1
        progress(ended.resumed + sum(ended.statuses.values()), ended.questions, meter.cost or 0)

    def affordable() -> Iterator[Question]:
        for key, question in distinct.items():
            if key not in done:
                ended.stopped = ended.stopped or meter.reached()
                if ended.stopped:
                    return
                yield question

    progress(ended.resumed, ended.questions, 0)
    if ray is None:
        asyncio.run(_here(affordable(), asking, concurrency, on_answer))
    else:
        _on_ray(affordable(), asking, ray, concurrency, on_answer)
    return ended


async def _here(
    questions: Iterator[Question],
    asking: Asking,
    concurrency: int,
    on_answer: Callable[[BatchAnswer], None],
) -> None:
    graph = graph_of(asking)

    async def work() -> None:
        for question in questions:
            on_answer(await answered(graph, asking, question))

    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(work())


def _on_ray(
    questions: Iterator[Question],
    asking: Asking,
    address: str,
    concurrency: int,
    on_answer: Callable[[BatchAnswer], None],
) -> None:
    ray = load_ray()
    with cluster(ray, concurrency, address):
        found = on_workers(
            ray, partial(_in_worker, asking), questions, cores(ray),
            named=lambda question: f"question {question.id}",
        )  # fmt: skip
        for _, row in found:
            on_answer(row)


def _in_worker(asking: Asking, question: Question) -> BatchAnswer:
    graph, loop = _kept(asking)
    return loop.run(answered(graph, asking, question))


@cache
def _kept(asking: Asking) -> tuple[Graph, "asyncio.Runner"]:
    """Keep the graph, and the event loop that its clients belong to, between questions."""
    return graph_of(asking), asyncio.Runner()


def graph_of(asking: Asking) -> Graph:
    """Build the graph of a run, with parts of this process.

    Raises:
        CragError: a part cannot be used, or there is no index.
    """
    parts = choose_parts(Environment.of(asking.environment), index_must_exist=True)
    return graph_named(asking.method).build(parts)


async def answered(graph: Graph, asking: Asking, question: Question) -> BatchAnswer:
    """Answer one question; a run that fails is an answer that says so."""
    settings = settings_from_text(dict(asking.settings))
    state: Mapping[str, Any] = {}
    start = time.perf_counter()
    with Attempt("run") as attempt:
        state = await graph.ainvoke({"question": question.question}, context=settings)
    error = redact(f"{type(attempt.error).__name__}: {attempt.error}") if attempt.error else ""
    status: Status = "failed" if error else "abstained" if state["abstained"] else "answered"
    return BatchAnswer(
        key=asking.key(question),
        run=asking.run,
        id=question.id,
        question=question.question,
        status=status,
        error=error,
        answer=str(state.get("answer") or ""),
        certainty=state.get("certainty"),
        action=str(state.get("action") or ""),
        citations=[
            Cited(
                number=one["number"],
                title=one["source"]["title"],
                url=one["source"]["url"],
                text=one["text"],
            )
            for one in state.get("citations") or []
        ],
        events=list(state.get("events") or []),
        usage=dict(state.get("usage") or {}),
        seconds=round(time.perf_counter() - start, 3),
    )

"""Many questions at a time, in this process or on Ray, within a budget.

How `crag bench` asks a question, what every row says of it, and how work is spread.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, Literal, NamedTuple, NotRequired, TypeVar

from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from crag.answering.attribution import unsupported_share
from crag.events import Event, EventKind, redact
from crag.papers.bench.budget import BudgetSpentError, Meter
from crag.runtime.attempt import Attempt
from crag.runtime.ray_cluster import Step, spread
from crag.settings import Settings
from crag.state import Outcome

Graph = CompiledStateGraph[Any, Any, Any, Any]
Status = Literal["answered", "abstained", "failed"]
Item = TypeVar("Item")
Answered = TypeVar("Answered")


class Cited(TypedDict):
    """A source of an answer."""

    number: int
    title: str
    url: str
    text: str


class AnswerRow(TypedDict):
    """What came of one question, whoever asked it."""

    id: str
    status: Status
    error: str
    """Why it failed; empty otherwise."""
    answer: str
    outcome: NotRequired[Outcome | None]
    """None if it failed; rows of older versions lack it."""
    action: str
    """Empty if the graph takes none."""
    citations: list[Cited]
    unsupported: NotRequired[float | None]
    """Share of the answer's sentences that no kept strip supports; None without a cited answer."""
    events: list[Event]
    usage: dict[str, Any]
    """Calls and tokens, and their `cost` where the settings have prices."""
    seconds: float


PART_FAILED: frozenset[EventKind] = frozenset(
    {"model_failed", "evaluator_failed", "retrieval_failed"}
)
"""Events of parts that failed: with them, the same question may be answered better another time."""


class Run(NamedTuple):
    """One question through a graph."""

    state: dict[str, Any]
    """Empty if the run failed."""
    seconds: float
    error: str
    """Why it failed, without secrets; empty otherwise."""

    def row(self, identity: str, error: str = "") -> AnswerRow:
        """Return what every row says; `error` is a failure that the state tells."""
        state, error = self.state, self.error or error
        status: Status = "abstained" if state.get("outcome") == "not_found" else "answered"
        return AnswerRow(
            id=identity,
            status="failed" if error else status,
            error=error,
            answer="" if error else str(state.get("answer") or ""),
            outcome=state.get("outcome"),
            action=str(state.get("action") or ""),
            citations=[
                Cited(
                    number=citation["number"],
                    title=citation["source"]["title"],
                    url=citation["source"]["url"],
                    text=citation["text"],
                )
                for citation in state.get("citations") or []
            ],
            unsupported=unsupported_share(state),
            events=list(state.get("events") or []),
            usage=dict(state.get("usage") or {}),
            seconds=round(self.seconds, 3),
        )


async def run_question(graph: Graph, question: str, settings: Settings) -> Run:
    """Ask one question; a failure is part of the result."""
    state: dict[str, Any] = {}
    start = time.perf_counter()
    with Attempt("run") as attempt:
        state = await graph.ainvoke({"question": question}, context=settings)
    seconds = time.perf_counter() - start
    error = redact(f"{type(attempt.error).__name__}: {attempt.error}") if attempt.error else ""
    return Run(state, seconds, error)


async def concurrently(
    items: Iterable[Item],
    answer: Callable[[Item], Awaitable[Answered]],
    on_answer: Callable[[Answered], object],
    *,
    concurrency: int,
    meter: Meter | None = None,
) -> str:
    """Answer items, `concurrency` at a time; return the limit that stopped it, if any.

    Each result is passed on before its worker takes the next item. A limit is looked at before each
    item; an item whose answer raises `BudgetSpentError` has no result. Any other error ends all.
    """
    within = _WithinBudget(items, meter)

    async def work() -> None:
        for item in within:
            try:
                on_answer(await answer(item))
            except BudgetSpentError as error:
                within.stopped = within.stopped or str(error)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, concurrency)):
                group.create_task(work())
    except ExceptionGroup as failures:  # As without concurrency, where a full disk is one error.
        raise failures.exceptions[0] from None
    return within.stopped


def on_ray(
    items: Sequence[Item],
    answering: Step,
    on_answer: Callable[[Any], object],
    *,
    workers: int,
    meter: Meter,
) -> str:
    """Answer items in Ray workers; return the limit that stopped it, if any.

    RAY_ADDRESS names a cluster, all of whose cores work; otherwise as many `workers` of this
    machine do. `on_answer` adds to the meter what an answer has spent; what is under way when a
    limit is reached is lost.

    Raises:
        CragError: there is no such cluster, or its workers failed again and again.
    """
    if stopped := meter.reached():
        return stopped
    with closing(spread(items, answering, workers=workers)) as answers:
        for place, answered in enumerate(answers, start=1):
            on_answer(answered)
            if (stopped := meter.reached()) and place < len(items):
                return stopped
    return ""


class _WithinBudget(Iterator[Item]):
    """The items until a limit of the budget is reached."""

    def __init__(self, items: Iterable[Item], meter: Meter | None) -> None:
        self._items, self._meter = iter(items), meter
        self.stopped = ""

    def __next__(self) -> Item:
        item = next(self._items)  # Who has nothing left is not stopped.
        if self._meter is not None:
            self.stopped = self.stopped or self._meter.reached()
        if self.stopped:
            raise StopIteration
        return item

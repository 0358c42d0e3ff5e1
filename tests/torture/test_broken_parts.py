"""Questions to all graphs, whose parts break in every way: none raises, none is lost."""

import asyncio
import gc
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from crag.graph import build_crag
from crag.graph_registry import OFFERED
from tests.repeating import times
from tests.torture.asking import WAYS, ask, case
from tests.torture.telling import tell

QUESTIONS = times(60, 1000, 10_000)
AT_ONCE = 8
FILES = Path("/proc/self/fd")
TOGETHER = times(40, 500, 500)


def kept() -> Counter[str]:
    """Count what a process must not collect: threads, descriptors, and tasks of the loop."""
    gc.collect()
    descriptors = sum(1 for _ in FILES.iterdir()) if FILES.is_dir() else 0
    tasks = len(asyncio.all_tasks())
    return Counter(threads=threading.active_count(), descriptors=descriptors, tasks=tasks)


async def settled(before: Counter[str]) -> Counter[str]:
    """Wait until no more is kept than before, or for ten seconds; return what is kept too much."""
    until = time.monotonic() + 10
    while (more := kept() - before) and time.monotonic() < until:  # noqa: ASYNC110 - of no event
        await asyncio.sleep(0.05)
    return more


async def all_of(
    numbers: range, ask_one: Callable[[int], Awaitable[Any]], at_once: int = AT_ONCE
) -> list[Any]:
    gate = asyncio.Semaphore(at_once)

    async def gated(number: int) -> Any:
        async with gate:
            return await ask_one(number)

    return await asyncio.gather(*map(gated, numbers))


class Told(NamedTuple):
    """What is kept of one question."""

    graph: str
    way: str
    faults: int
    recorded: int
    problem: str


async def question(number: int) -> Told:
    outcome = await asyncio.wait_for(ask(case(number)), 300)
    one = outcome.case
    recorded = len(one.saboteur.told)
    return Told(one.graph, one.way, one.saboteur.faults, recorded, outcome.problem())


@pytest.mark.slow
async def test_no_question_raises_or_is_lost_whatever_its_parts_do() -> None:
    await all_of(range(-2 * AT_ONCE, 0), question)  # Whatever is made once is there now.
    before, start = kept(), time.monotonic()
    told: list[Told] = await all_of(range(QUESTIONS), question)
    faults, recorded = sum(one.faults for one in told), sum(one.recorded for one in told)
    seconds = time.monotonic() - start
    tell(f"{QUESTIONS} questions, {faults} faults, {recorded} failures, {seconds:.0f} s")
    problems = Counter((one.problem, one.graph, one.way) for one in told if one.problem)
    assert problems == {}, problems.most_common(5)
    assert len(told) == QUESTIONS
    assert faults > 2 * QUESTIONS
    assert {one.graph for one in told} == set(OFFERED)
    assert {one.way for one in told} == set(WAYS)
    assert await settled(before + Counter(threads=32)) == {}  # The loop's own pool may grow.


@pytest.mark.slow
async def test_the_same_graph_serves_many_at_once() -> None:
    one = case(0, rate=0)
    graph: Any = build_crag(one.parts)
    asked = {"question": "Who wrote the first program?"}
    expected = await graph.ainvoke(asked, context=one.settings)
    before = kept()
    answers = await all_of(
        range(TOGETHER), lambda _: graph.ainvoke(asked, context=one.settings), TOGETHER
    )
    assert {answer["answer"] for answer in answers} == {expected["answer"]}
    assert all(answer["events"] == expected["events"] for answer in answers)
    assert await settled(before + Counter(threads=32)) == {}


async def test_runs_that_are_cancelled_leave_nothing_behind() -> None:
    async def cancelled(number: int) -> None:
        task = asyncio.create_task(ask(case(number)))
        await asyncio.sleep(number % 7 / 200)
        task.cancel()
        await asyncio.wait([task], timeout=60)
        assert task.done()

    before = kept()
    await all_of(range(times(15, 100, 500)), cancelled)
    assert await settled(before + Counter(threads=32)) == {}

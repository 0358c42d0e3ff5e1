"""What back ends spend is counted for the run that asked, and for no other."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from crag.reflection.spending import counting, spend
from crag.state import Usage


def test_calls_are_added_up_also_in_threads() -> None:
    with counting() as spending:
        spend(Usage(llm_calls=1, input_tokens=5))
        with ThreadPoolExecutor() as pool:
            pool.submit(copy_context().run, spend, Usage(llm_calls=1, input_tokens=2)).result()
    spend(Usage(llm_calls=9))
    assert spending.usage == {"llm_calls": 2, "input_tokens": 7}


async def test_runs_at_the_same_time_are_apart() -> None:
    async def run(calls: int) -> Usage:
        with counting() as spending:
            for _ in range(calls):
                await asyncio.sleep(0)
                await asyncio.to_thread(spend, Usage(llm_calls=1))
            return spending.usage

    found = await asyncio.gather(*map(run, range(4)))
    assert [usage.get("llm_calls", 0) for usage in found] == [0, 1, 2, 3]


def test_an_inner_count_takes_over_and_gives_back() -> None:
    with counting() as outer:
        with counting() as inner:
            spend(Usage(llm_calls=1))
        spend(Usage(llm_calls=2))
    assert (inner.usage, outer.usage) == ({"llm_calls": 1}, {"llm_calls": 2})

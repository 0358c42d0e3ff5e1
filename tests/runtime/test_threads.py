"""Calls in daemon threads."""

import asyncio
import threading
from contextvars import ContextVar

import pytest

from crag.runtime.threads import in_thread, started

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


async def test_results_arguments_and_context_arrive() -> None:
    WHO.set("ada")
    assert await in_thread(lambda number, more: (WHO.get(), number + more), 1, more=2) == ("ada", 3)


async def test_errors_arrive() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod, 1, 0)


def test_without_a_loop() -> None:
    assert started(max, 1, 2).result() == 2
    assert started(lambda: threading.current_thread().daemon).result()


def test_a_stuck_call_holds_up_neither_the_loop_nor_its_end() -> None:
    end, ended = threading.Event(), threading.Event()

    def stuck() -> None:
        end.wait(10)
        ended.set()

    async def main() -> None:
        async with asyncio.timeout(0.02):
            await in_thread(stuck)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert not ended.is_set()
    end.set()
    assert ended.wait(5)

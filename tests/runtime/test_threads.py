"""Calls in daemon threads."""

import asyncio
import threading
from contextvars import ContextVar

import pytest

from crag.runtime.threads import await_within, call_within, in_thread, started

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


async def test_results_arguments_and_context_arrive() -> None:
    WHO.set("ada")
    assert await in_thread(lambda number, more: (WHO.get(), number + more), 1, more=2) == ("ada", 3)


async def test_errors_arrive() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod, 1, 0)
    with pytest.raises(RuntimeError, match="StopIteration was raised"):
        await in_thread(next, iter(()))


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


def test_a_call_has_an_end() -> None:
    WHO.set("ada")
    assert call_within(5, WHO.get) == "ada"
    with pytest.raises(ZeroDivisionError):
        call_within(5, lambda: divmod(1, 0))
    end = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.02 seconds"):
        call_within(0.02, lambda: end.wait(10))
    end.set()


async def test_what_is_awaited_has_an_end() -> None:
    assert await await_within(5, asyncio.sleep(0, "ada")) == "ada"
    with pytest.raises(TimeoutError, match=r"no answer within 0\.02 seconds"):
        await await_within(0.02, asyncio.sleep(10))


def _late(message: str) -> None:
    raise TimeoutError(message)


async def _late_too(message: str) -> None:
    raise TimeoutError(message)


async def test_an_end_of_the_part_s_own_says_more() -> None:
    with pytest.raises(TimeoutError, match="the wiki took too long"):
        call_within(5, lambda: _late("the wiki took too long"))
    with pytest.raises(TimeoutError, match="the wiki took too long"):
        await await_within(5, _late_too("the wiki took too long"))

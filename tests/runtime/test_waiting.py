"""What waits is written once, and calls in daemon threads."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from crag.errors import ModelError
from crag.runtime.waiting import (
    blocking,
    call,
    call_within,
    compute,
    in_own_loop,
    in_thread,
    started,
    together,
)

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")
FAILED = ModelError("fake", "failed", "one")


class Part:
    """Notes how it was called, and in which thread."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def ask(self, what: str, *, error: Exception | None = None) -> str:
        self.calls.append((f"blocks {what}", threading.get_ident()))
        if error is not None:
            raise error
        return f"{WHO.get()}: {what}"

    async def aask(self, what: str, *, error: Exception | None = None) -> str:
        await asyncio.sleep(0)
        self.calls.append((f"waits {what}", threading.get_ident()))
        if error is not None:
            raise error
        return f"{WHO.get()}: {what}"


async def both(part: Part, **options: Any) -> list[str]:
    return [await call(part.ask, part.aask, what, **options) for what in ("one", "two")]


async def test_a_body_calls_parts_as_its_caller_waits() -> None:
    """The test itself runs within an event loop, as a cell of Jupyter does."""
    WHO.set("ada")
    here, part = threading.get_ident(), Part()
    assert blocking(both(part)) == ["ada: one", "ada: two"]
    assert part.calls == [("blocks one", here), ("blocks two", here)]
    assert await both(part) == ["ada: one", "ada: two"]
    assert part.calls[2:] == [("waits one", here), ("waits two", here)]


def test_a_body_needs_no_event_loop() -> None:
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
    assert blocking(both(Part())) == ["nobody: one", "nobody: two"]


@pytest.mark.parametrize("error", [KeyError("x"), asyncio.CancelledError(), StopIteration()])
async def test_errors_of_parts_reach_the_body(error: Any) -> None:
    # No coroutine can raise StopIteration.
    kind: Any = RuntimeError if isinstance(error, StopIteration) else type(error)

    async def body() -> str:
        try:
            return await call(part.ask, part.aask, "", error=error)
        except kind:
            return "arrived"

    part = Part()
    assert blocking(body()) == "arrived"
    assert await body() == "arrived"


async def test_a_part_that_blocks_may_run_a_loop_of_its_own() -> None:
    async def body() -> list[str]:
        return await call(lambda: in_own_loop(both(within)), lambda: both(within))

    within = Part()
    blocking(body())
    assert [name for name, _ in within.calls] == ["waits one", "waits two"]
    assert blocking(call(lambda: blocking(both(within)), lambda: both(within)))
    assert [name for name, _ in within.calls[2:]] == ["blocks one", "blocks two"]


def test_what_only_a_loop_can_wait_for_is_refused() -> None:
    with pytest.raises(RuntimeError, match="awaits an event loop"):
        blocking(asyncio.sleep(0))
    assert blocking(both(Part())), "the next body is not affected"


async def test_what_computes_leaves_the_loop_free() -> None:
    async def body() -> int:
        return await compute(threading.get_ident)

    assert blocking(body()) == threading.get_ident()
    assert await body() != threading.get_ident()


async def test_together_keeps_the_order_and_runs_side_by_side() -> None:
    met = asyncio.Barrier(2)

    async def meeting(number: int) -> int:
        await asyncio.wait_for(met.wait(), 5)
        return number

    async def plain(number: int) -> int:
        return number

    assert await together([meeting(1), meeting(2)]) == [1, 2]
    assert blocking(together([plain(1), plain(2)])) == [1, 2]


async def test_together_a_failure_leaves_nothing_running() -> None:
    done: list[str] = []

    async def one(name: str, error: Exception | None = None) -> None:
        await call(lambda: None, lambda: asyncio.sleep(0.01 if error is None else 0))
        done.append(name)
        if error is not None:
            raise error

    def bodies() -> list[Any]:
        return [one("a", FAILED), one("b"), one("c", KeyError("c"))]

    with pytest.raises(ModelError):
        blocking(together(bodies()))
    assert done == ["a"]
    done.clear()
    with pytest.raises(KeyError):  # What is no `CragError` says more than the failure of a model.
        await together(bodies())
    assert sorted(done) == ["a", "b", "c"]


async def test_results_arguments_and_context_arrive() -> None:
    WHO.set("ada")
    assert await in_thread(lambda number, more: (WHO.get(), number + more), 1, more=2) == ("ada", 3)
    assert in_own_loop(both(Part())) == ["ada: one", "ada: two"]


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


Within = Callable[[float, Callable[[], Any], Callable[[], Awaitable[Any]]], Awaitable[Any]]


def _blocked(seconds: float, blocks: Callable[[], Any], waits: Callable[[], Any]) -> Any:
    return asyncio.sleep(0, blocking(call_within(seconds, blocks, waits)))


@pytest.mark.parametrize("within", [_blocked, call_within])
async def test_a_call_has_an_end(within: Within) -> None:
    async def failing() -> None:
        divmod(1, 0)

    WHO.set("ada")
    assert await within(5, WHO.get, lambda: asyncio.sleep(0, WHO.get())) == "ada"
    with pytest.raises(ZeroDivisionError):
        await within(5, lambda: divmod(1, 0), failing)
    end = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.02 seconds"):
        await within(0.02, lambda: end.wait(10), lambda: asyncio.sleep(10))
    end.set()


def _late(message: str) -> None:
    raise TimeoutError(message)


async def _late_too(message: str) -> None:
    raise TimeoutError(message)


@pytest.mark.parametrize("within", [_blocked, call_within])
async def test_an_end_of_the_part_s_own_says_more(within: Within) -> None:
    message = "the wiki took too long"
    with pytest.raises(TimeoutError, match=message):
        await within(5, lambda: _late(message), lambda: _late_too(message))

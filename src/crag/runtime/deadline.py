"""An end for calls of parts that may never return."""

import asyncio
import contextvars
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

Result = TypeVar("Result")


def call_within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what `call` returns, or give up on it after `seconds`.

    A thread cannot be stopped: one that is given up on ends by itself or with the process.

    Raises:
        TimeoutError: it took longer.
    """
    done: queue.SimpleQueue[tuple[Result | None, BaseException | None]] = queue.SimpleQueue()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            done.put((context.run(call), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            done.put((None, error))

    threading.Thread(target=work, daemon=True, name="crag-call").start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise late(seconds) from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # There is a result where there is no error.


def late(seconds: float) -> TimeoutError:
    """Return the error that says how long was waited."""
    return TimeoutError(f"no answer within {seconds:g} seconds")


async def await_within(seconds: float, awaited: Awaitable[Result]) -> Result:
    """Return what is awaited, or cancel it after `seconds`.

    Raises:
        TimeoutError: it took longer.
    """
    try:
        return await asyncio.wait_for(awaited, seconds)
    except TimeoutError as error:
        if str(error):  # A part's own, which says more.
            raise
        raise late(seconds) from error

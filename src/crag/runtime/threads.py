"""Blocking calls in daemon threads, and an end for calls of parts that may never return.

The threads of `asyncio.to_thread` are joined when a loop closes and when the interpreter exits: a
name server that does not answer, or a page that takes a minute to parse, would outlast every limit.
A thread cannot be stopped: one that is given up on ends by itself or with the process.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def started(
    function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Future[Result]:
    """Call `function` in a daemon thread, with the context variables of the caller."""
    future: Future[Result] = Future()
    context = copy_context()

    def work() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = context.run(function, *args, **kwargs)
        except StopIteration as error:  # A future would take it for the end of its own coroutine.
            future.set_exception(RuntimeError(f"{type(error).__name__} was raised"))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, daemon=True, name="crag-call").start()
    return future


async def in_thread(
    function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Wait for `function` in a daemon thread; cancelled, the thread is left to itself."""
    return await asyncio.wrap_future(started(function, *args, **kwargs))


def call_within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what `call` returns, or give up on it after `seconds`.

    Raises:
        TimeoutError: it took longer.
    """
    future = started(call)
    try:
        return future.result(timeout=seconds)
    except TimeoutError as error:
        if future.done():  # Its own error, or it came just in time.
            return future.result()
        raise _late(seconds) from error


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
        raise _late(seconds) from error


def _late(seconds: float) -> TimeoutError:
    return TimeoutError(f"no answer within {seconds:g} seconds")

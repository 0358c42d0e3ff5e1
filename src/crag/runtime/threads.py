"""Blocking calls in threads of their own, which hold up neither an event loop nor the exit.

The threads of `asyncio.to_thread` are joined when a loop closes and when the interpreter exits: a
name server that does not answer, or a page that takes a minute to parse, would outlast every limit.
"""

import asyncio
import threading
from collections.abc import Callable
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
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, daemon=True).start()
    return future


async def in_thread(
    function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Wait for `function` in a daemon thread; cancelled, the thread is left to itself."""
    return await asyncio.wrap_future(started(function, *args, **kwargs))

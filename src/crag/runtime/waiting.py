"""What waits is written once, as a coroutine, and runs for callers that block as well.

`blocking` runs such a body in the calling thread, without an event loop: all that it awaits are
calls of this module, and each of them then uses the method of a part that blocks. A part therefore
runs in the caller's thread, with its context variables, whether or not a loop runs there, as in
Jupyter; and no client of a part is used on a loop that is not its own.

Only what waits for many things at once needs a loop of its own: `in_own_loop`.

The threads of `asyncio.to_thread` are joined when a loop closes and when the interpreter exits: a
name server that does not answer, or a page that takes a minute to parse, would outlast every limit.
`in_thread` and `call_within` use daemon threads. A thread cannot be stopped: one that is given up
on ends by itself or with the process.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, ParamSpec, TypeVar, cast

from crag.errors import CragError

Given = ParamSpec("Given")
Result = TypeVar("Result")
_BLOCKS: ContextVar[bool] = ContextVar("crag_blocks", default=False)
"""Whether the caller of the body that runs blocks, instead of awaiting it."""


def blocking(body: Coroutine[Any, Any, Result]) -> Result:
    """Run a body that awaits only the calls of this module, for a caller that blocks.

    Raises:
        RuntimeError: it awaits something else, which only an event loop can wait for.
    """
    token = _BLOCKS.set(True)
    try:
        body.send(None)
    except StopIteration as end:
        return cast("Result", end.value)
    finally:
        _BLOCKS.reset(token)
    body.close()
    raise RuntimeError("a body that is run for a caller that blocks awaits an event loop")


async def call(
    blocks: Callable[Given, Result],
    waits: Callable[Given, Awaitable[Result]],
    *args: Given.args,
    **kwargs: Given.kwargs,
) -> Result:
    """Call a part as the caller of this body waits: by `blocks`, or by awaiting `waits`."""
    if not _BLOCKS.get():
        return await waits(*args, **kwargs)
    token = _BLOCKS.set(False)  # The part may run an event loop of its own.
    try:
        return blocks(*args, **kwargs)
    finally:
        _BLOCKS.reset(token)


async def call_within(
    seconds: float,
    blocks: Callable[Given, Result],
    waits: Callable[Given, Awaitable[Result]],
    *args: Given.args,
    **kwargs: Given.kwargs,
) -> Result:
    """Do as `call`, and give up after `seconds`: on a thread, or by cancelling what is awaited.

    Raises:
        TimeoutError: it took longer.
    """

    def blocked() -> Result:
        future = started(blocks, *args, **kwargs)
        try:
            return future.result(timeout=seconds)
        except TimeoutError as error:
            if future.done():  # Its own error, or it came just in time.
                return future.result()
            raise late from error

    async def waited() -> Result:
        try:
            return await asyncio.wait_for(waits(*args, **kwargs), seconds)
        except TimeoutError as error:
            if str(error):  # A part's own, which says more.
                raise
            raise late from error

    late = TimeoutError(f"no answer within {seconds:g} seconds")
    return await call(blocked, waited)


async def compute(
    function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Return what a function computes: in the calling thread, or in another beside a loop."""
    bound = partial(function, *args, **kwargs)
    return await call(bound, partial(asyncio.to_thread, bound))


async def together(bodies: Sequence[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Return the results of several bodies: side by side, or one by one for who blocks.

    Side by side, all are awaited even if one fails, so that none keeps running. Of several failures
    one that is no `CragError` is raised first. One by one, the first failure is the last call.
    """
    if not _BLOCKS.get():
        results = await asyncio.gather(*bodies, return_exceptions=True)
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            raise min(failures, key=lambda failure: isinstance(failure, CragError))
        return cast("list[Result]", results)
    try:
        return [await body for body in bodies]
    finally:
        for body in bodies:
            body.close()


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


def in_own_loop(body: Coroutine[Any, Any, Result]) -> Result:
    """Run a body that waits for many things at once, in a thread with an event loop of its own."""
    return started(asyncio.run, body).result()

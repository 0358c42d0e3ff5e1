"""Give up on a call that takes too long."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def within(
    seconds: float, function: Callable[Given, Result], *args: Given.args, **kwargs: Given.kwargs
) -> Result:
    """Return what `function` returns, called in a daemon thread, which is left to itself if late.

    Raises:
        TimeoutError: it took longer than `seconds`.
    """
    future: Future[Result] = Future()
    context = copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(function, *args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is awaited
            future.set_exception(error)

    threading.Thread(target=work, daemon=True, name="crag-call").start()
    try:
        return future.result(timeout=seconds)
    except TimeoutError as error:
        raise TimeoutError(str(error) or f"no answer within {seconds:g} seconds") from None

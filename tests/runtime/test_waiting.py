"""A call that takes too long is given up on."""

import contextvars
import threading

import pytest

from crag.runtime.waiting import within

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name")


def test_a_result_an_error_and_the_context_come_back() -> None:
    NAME.set("mine")
    assert within(5, lambda suffix: NAME.get() + suffix, "!") == "mine!"
    with pytest.raises(TimeoutError, match="of its own"):
        within(5, raising)


def raising() -> None:
    raise TimeoutError("of its own")


def test_what_is_late_is_left_to_itself() -> None:
    goes_on = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 seconds"):
        within(0.05, goes_on.wait, 10)
    goes_on.set()

"""What parts raise is caught, what they return is held as plain JSON, and what is late is left."""

import asyncio
import contextvars
import logging
import threading
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langgraph.errors import GraphInterrupt

from crag.events import event
from crag.runtime.attempt import Attempt
from crag.runtime.retrievers import plain_documents
from crag.runtime.waiting import within

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name")


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (OSError("the disk is gone"), "OSError: the disk is gone"),
        (UnprintableError(), "UnprintableError: <UnprintableError that cannot be shown>"),
        (KeyError(), "KeyError"),
        (ValueError("half \ud83d of a pair"), "ValueError: half \ufffd of a pair"),
    ],
)
def test_what_a_part_raises_is_caught_and_can_be_told(
    error: Exception, detail: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), Attempt("part") as attempt:
        raise error
    assert event("model_failed", "generate", attempt.error)["detail"] == detail
    assert caplog.records[0].getMessage().startswith(f"part failed: {type(error).__name__}")
    caplog.clear()  # A report of pytest must be UTF-8.


@pytest.mark.parametrize("error", [KeyboardInterrupt, GraphInterrupt, asyncio.CancelledError])
def test_what_is_not_the_parts_to_decide_is_raised(error: type[BaseException]) -> None:
    with pytest.raises(error), Attempt("part"):
        raise error


def test_documents_are_cut_and_their_metadata_plain() -> None:
    odd = {"path": Path("a.md"), "share": float("nan"), "tags": {"x"}, 1: "one"}
    (document,) = plain_documents([Document("half \ud83d", metadata=odd), Document("b")], 1)
    assert document.page_content == "half \ufffd"
    assert document.metadata == {"path": "a.md", "share": None, "tags": ["x"], "1": "one"}


def raising() -> None:
    raise TimeoutError("of its own")


def test_what_is_in_time_comes_back_and_what_is_late_is_left_to_itself() -> None:
    NAME.set("mine")
    assert within(5, lambda suffix: NAME.get() + suffix, "!") == "mine!"
    with pytest.raises(TimeoutError, match="of its own"):
        within(5, raising)
    goes_on = threading.Event()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 seconds"):
        within(0.05, goes_on.wait, 10)
    goes_on.set()

"""What a part raises is caught; what ends a run is not."""

import asyncio
import logging

import pytest
from langgraph.errors import GraphInterrupt

from crag.events import event
from crag.runtime.attempt import Attempt


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (OSError("the disk is gone"), "OSError: the disk is gone"),
        (UnprintableError(), "UnprintableError: <UnprintableError that cannot be shown>"),
        (KeyError(), "KeyError"),
        (StopIteration(7), "StopIteration: 7"),
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


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt, SystemExit, GeneratorExit, GraphInterrupt, asyncio.CancelledError],
)
def test_what_is_not_the_parts_to_decide_is_raised(error: type[BaseException]) -> None:
    with pytest.raises(error), Attempt("part"):
        raise error

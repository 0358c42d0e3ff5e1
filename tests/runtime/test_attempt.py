import asyncio
import logging
import threading

import pytest
from langgraph.errors import GraphInterrupt

from crag.errors import ReplyError
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
        (asyncio.CancelledError(), "ReplyError: the part raised CancelledError"),
    ],
)
async def test_what_a_part_raises_is_caught_and_can_be_told(
    error: BaseException, detail: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), Attempt("part") as attempt:
        raise error
    assert event("model_failed", "generate", attempt.error)["detail"] == detail
    assert caplog.records[0].getMessage().startswith(f"part failed: {type(error).__name__}")


async def test_half_a_pair_of_surrogates_is_replaced() -> None:
    with Attempt("part") as attempt:  # Not logged here: a report of pytest-xdist must be UTF-8.
        raise ValueError("half \ud83d of a pair")
    detail = event("model_failed", "generate", attempt.error)["detail"]
    assert detail == "ValueError: half \ufffd of a pair"


@pytest.mark.parametrize("error", [KeyboardInterrupt, GeneratorExit, SystemExit, GraphInterrupt])
def test_what_is_not_the_parts_to_decide_is_raised(error: type[BaseException]) -> None:
    with pytest.raises(error), Attempt("part"):
        raise error


def test_an_exit_away_from_the_main_thread_ends_no_run() -> None:
    caught: list[Exception | None] = []

    def call() -> None:
        with Attempt("part") as attempt:
            raise SystemExit(3)
        caught.append(attempt.error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert [str(error) for error in caught] == ["the part raised SystemExit"]
    assert isinstance(caught[0], ReplyError)


async def test_a_run_that_is_cancelled_is_cancelled() -> None:
    started = asyncio.Event()
    attempt = Attempt("part")

    async def call() -> None:
        with attempt:
            started.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(call())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert attempt.error is None


def test_a_part_that_cancels_itself_where_no_loop_runs_has_failed() -> None:
    with Attempt("retriever") as attempt:
        raise asyncio.CancelledError
    assert str(attempt.error) == "the retriever raised CancelledError"

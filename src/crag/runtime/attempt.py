"""Calls of parts: what a retriever is passed, and how the failure of any part is caught.

A part that fails must not end a run. The exceptions that third-party code raises cannot be listed,
so this module is the one place that catches all of them. Nodes record them as events.
"""

import asyncio
import logging
import threading
from traceback import format_exception
from types import TracebackType
from typing import Any, Self

from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStoreRetriever
from langgraph.errors import GraphBubbleUp

from crag.errors import ReplyError
from crag.events import redact
from crag.plain import said
from crag.settings import FILTERS, Settings

logger = logging.getLogger(__name__)


class Attempt:
    """Catch the exception of a call made in its ``with`` block, so the node can continue.

    LangGraph's own signals (an interrupt for a human, a drained run), the cancellation of the run,
    Ctrl-C, and an exit that a signal handler may have asked for are raised. A part that cancels
    itself, or calls `sys.exit` where no handler runs, has failed like any other.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        """Start the attempt."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Catch what the part raised; raise everything else."""
        if error is None or isinstance(error, GraphBubbleUp):
            return False
        if isinstance(error, Exception):
            self.error = error
        elif _is_of_the_part(error):
            self.error = ReplyError(self.what, f"raised {type(error).__name__}")
        else:
            return False
        name = type(error).__name__
        logger.warning("%s failed: %s: %s", self.what, name, redact(said(error)))
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s failed\n%s", self.what, redact("".join(format_exception(error))))
        return True


def _is_of_the_part(error: BaseException) -> bool:
    """Tell a part that gives up from a run that is cancelled, or a program that is to end."""
    if isinstance(error, asyncio.CancelledError):
        task = _current_task()
        return task is None or task.cancelling() == 0
    # Handlers of signals run in the main thread only.
    in_main = threading.current_thread() is threading.main_thread()
    return isinstance(error, SystemExit) and not in_main


def _current_task() -> "asyncio.Task[Any] | None":
    try:
        return asyncio.current_task()
    except RuntimeError:  # No event loop runs in this thread.
        return None


def options_of(retriever: BaseRetriever | None, settings: Settings) -> dict[str, Any]:
    """Return the settings that the retriever's `invoke` takes as keyword arguments.

    A retriever names them in its attribute `run_settings`. One of a vector store without that
    attribute takes `k`; every other one takes none.
    """
    return {name: getattr(settings, name) for name in _names(retriever)}


def ignored_filters(retriever: BaseRetriever, settings: Settings) -> list[str]:
    """Return the filters that are set, but that the retriever does not take."""
    taken = _names(retriever)
    return [name for name in FILTERS if getattr(settings, name) is not None and name not in taken]


def _names(retriever: BaseRetriever | None) -> tuple[str, ...]:
    own = ("k",) if isinstance(retriever, VectorStoreRetriever) else ()
    return tuple(getattr(retriever, "run_settings", own))

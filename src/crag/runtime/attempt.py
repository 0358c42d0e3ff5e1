"""Calls of parts that may fail, without ending the run.

The exceptions that third-party code raises cannot be listed, so this is the one place that catches
all of them. Nodes record them as events.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from threading import Event
from traceback import format_exception
from typing import Self

from langgraph.errors import GraphBubbleUp

from crag.events import describe, redact
from crag.plain import said

logger = logging.getLogger(__name__)
_CANCELLED = ContextVar("cancelled", default=Event())  # noqa: B039 - that one is never set
"""Set when the run was cancelled, in whose context this is."""


@contextmanager
def cancellable() -> Iterator[None]:
    """Let no call begin in threads that are started here when the caller has been cancelled."""
    cancelled = Event()
    token = _CANCELLED.set(cancelled)
    try:
        yield
    except asyncio.CancelledError:
        cancelled.set()
        raise
    finally:
        _CANCELLED.reset(token)


class Attempt(AbstractContextManager["Attempt"]):
    """Catch the exception of a call made in its ``with`` block, so the node can continue.

    LangGraph's own signals, such as an interrupt for a human, are raised, and so is what is no
    `Exception`: the cancellation of the run, before which no call begins, and Ctrl-C.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        """Begin, unless the run was cancelled."""
        if _CANCELLED.get().is_set():
            raise asyncio.CancelledError
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        """Catch what the part raised."""
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return False
        self.error = error
        logger.warning("%s failed: %s", self.what, describe(error))
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s", redact(said("".join(format_exception(error)))))
        return True

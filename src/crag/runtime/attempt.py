"""Calls of parts that may fail in any way: a retriever, a model, a search.

A part that fails must not end a run. The exceptions that third-party code raises cannot be listed,
so this module is the one place that catches all of them. Nodes record them as events.
"""

import logging
from types import TracebackType
from typing import Self

from langgraph.errors import GraphBubbleUp

from crag.events import redact

logger = logging.getLogger(__name__)


class Attempt:
    """Catch the exception of a call made in its ``with`` block, so the node can continue.

    LangGraph's own signals (an interrupt for a human, a drained run) and cancellation are raised.
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
        """Catch an ordinary exception; raise everything else."""
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return False
        self.error = error
        logger.warning("%s failed: %s: %s", self.what, type(error).__name__, redact(str(error)))
        logger.debug("%s failed", self.what, exc_info=error)
        return True

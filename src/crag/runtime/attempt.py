"""The edge between our nodes and parts that may fail in any way: a retriever, a model, a search.

A failure outside us must not end a run. Which exceptions foreign code raises cannot be listed, so
the one place that holds all of them is here, and nodes turn what it held into an event.
"""

import logging
from types import TracebackType
from typing import Self

from langgraph.errors import GraphBubbleUp

from crag.events import redact

logger = logging.getLogger(__name__)


class Attempt:
    """Hold the failure of the calls made in its ``with`` block, so that the node can go on.

    LangGraph's own signals (an interrupt for a human, a drained run) and cancellation pass.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        """Begin the attempt."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        """Hold an ordinary exception; let everything else pass."""
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return False
        self.error = error
        logger.warning("%s failed: %s: %s", self.what, type(error).__name__, redact(str(error)))
        logger.debug("%s failed", self.what, exc_info=error)
        return True

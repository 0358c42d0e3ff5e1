"""Calls of parts that may fail, without ending the run.

The exceptions that third-party code raises cannot be listed, so this is the one place that catches
all of them. Nodes record them as events.
"""

import logging
from contextlib import AbstractContextManager
from traceback import format_exception

from langgraph.errors import GraphBubbleUp

from crag.events import describe, redact
from crag.plain import said

logger = logging.getLogger(__name__)


class Attempt(AbstractContextManager["Attempt"]):
    """Catch the exception of a call made in its ``with`` block, so the node can continue.

    LangGraph's own signals, such as an interrupt for a human, are raised, and so is what is no
    `Exception`: the cancellation of the run, and Ctrl-C.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.error: Exception | None = None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        """Catch what the part raised."""
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return False
        self.error = error
        logger.warning("%s failed: %s", self.what, describe(error))
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s", redact(said("".join(format_exception(error)))))
        return True

"""What reflection costs: back ends report it, and the caller of a run counts it.

A back end serves many runs at once, so a count of its own would mix them. A count lives in the
context of the caller instead, as LangChain's callbacks do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce

from crag.state import Usage, add_usage


class Spending:
    """What was spent while it was counted; threads may add at the same time."""

    def __init__(self) -> None:
        self._spent: list[Usage] = []

    @property
    def usage(self) -> Usage:
        """The sum so far, also of calls that failed."""
        return reduce(add_usage, list(self._spent), Usage())


_CURRENT: ContextVar[Spending | None] = ContextVar("crag_reflection_spending", default=None)


@contextmanager
def counting() -> Iterator[Spending]:
    """Count what back ends spend in the ``with`` block, in threads begun there too."""
    spending = Spending()
    token = _CURRENT.set(spending)
    try:
        yield spending
    finally:
        _CURRENT.reset(token)


def spend(usage: Usage) -> None:
    """Report the cost of one call; without effect outside `counting`."""
    spending = _CURRENT.get()
    if spending is not None:
        spending._spent.append(usage)  # noqa: SLF001 - of this module

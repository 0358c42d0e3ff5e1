"""What reflection costs: back ends report it, and the caller of a run counts it.

A back end serves many runs at once, so a count of its own would mix them. A count lives in the
context of the caller instead, as LangChain's callbacks do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from typing import cast

from crag.plain import WIDEST
from crag.state import Usage, add_usage


class Spending:
    """What was spent while it was counted."""

    def __init__(self) -> None:
        self._spent: list[Usage] = []

    def add(self, usage: Usage) -> None:
        """Add the cost of one call; threads may do so at the same time.

        Back ends may be foreign code: counts that are no numbers are left out.
        """
        counts = {
            name: count
            for name, count in usage.items()
            if name in Usage.__annotations__ and isinstance(count, int) and 0 <= count <= WIDEST
        }
        self._spent.append(cast("Usage", counts))

    @property
    def usage(self) -> Usage:
        """The sum so far, also of calls that failed."""
        return reduce(add_usage, list(self._spent), Usage())


_CURRENT: ContextVar[Spending | None] = ContextVar("crag_reflection_spending", default=None)


@contextmanager
def counting() -> Iterator[Spending]:
    """Count what back ends spend in the ``with`` block, in threads and tasks begun there too.

    If counts are nested, the inner one receives the cost.
    """
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
        spending.add(usage)

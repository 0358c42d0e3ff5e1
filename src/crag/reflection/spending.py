"""What reflection costs: back ends report it, and the caller of a run counts it.

A back end serves many runs at once, so what is spent lives in the context of the caller, as with
LangChain's callbacks.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce

from crag.state import Usage, add_usage

_SPENT: ContextVar[list[Usage] | None] = ContextVar("crag_reflection_spent", default=None)


@contextmanager
def counting() -> Iterator[list[Usage]]:
    """List what back ends spend in the ``with`` block, in threads begun there too."""
    spent: list[Usage] = []
    token = _SPENT.set(spent)
    try:
        yield spent
    finally:
        _SPENT.reset(token)


def spend(usage: Usage) -> None:
    """Report the cost of one call; without effect outside `counting`."""
    if (spent := _SPENT.get()) is not None:
        spent.append(usage)


def total(spent: Iterable[Usage]) -> Usage:
    """Sum what was counted."""
    return reduce(add_usage, spent, Usage())

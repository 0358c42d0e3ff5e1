"""What a row of a benchmark got from the cache and asked a model, within the budget of the run."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from crag.papers.bench.budget import BudgetSpentError, Meter


class Tally:
    """Cache hits of one row, and whether the budget refused it a call.

    Threads may count at the same time.
    """

    def __init__(self) -> None:
        self.cached: dict[str, int] = {}
        self.asked: dict[str, int] = {}
        """Calls and tokens of the chat model, including cached ones and those of a chat evaluator,
        which a graph does not count."""
        self.refused = ""
        self._lock = threading.Lock()

    def save(self, usage: Mapping[str, int]) -> None:
        """Count a cache hit."""
        self._add(self.cached, usage)

    def ask(self, usage: Mapping[str, int]) -> None:
        """Count calls and tokens of the chat model."""
        self._add(self.asked, usage)

    def _add(self, counts: dict[str, int], usage: Mapping[str, int]) -> None:
        with self._lock:
            for name, count in usage.items():
                counts[name] = counts.get(name, 0) + count


_CURRENT: ContextVar[Tally | None] = ContextVar("crag_bench_tally", default=None)


@contextmanager
def tallying() -> Iterator[Tally]:
    """Tally in the ``with`` block, also in threads and tasks started there."""
    tally = Tally()
    token = _CURRENT.set(tally)
    try:
        yield tally
    finally:
        _CURRENT.reset(token)


def current_tally() -> Tally:
    """Return the tally of the current row, or an unused one."""
    return _CURRENT.get() or Tally()


def reserve(meter: Meter) -> None:
    """Count one call, before it is made.

    Raises:
        BudgetSpentError: a limit is reached; the current row records it.
    """
    reached = meter.counted_call()
    if reached:
        current_tally().refused = reached
        raise BudgetSpentError(reached)

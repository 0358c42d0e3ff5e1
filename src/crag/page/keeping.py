"""What the server keeps: a user's threads beyond a number or an age are deleted, the oldest first.

LangGraph's development server holds all threads in its memory, and ignores a time to live.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from crag.errors import CragError
from crag.page.rules import Rules
from crag.runtime.attempt import Attempt

_SECONDS = 60.0
_AT_ONCE = 1000
_WORKING = "busy"
MINUTE = 60.0
"""Seconds within which the threads that a user makes are counted."""

logger = logging.getLogger(__name__)


def keeping(rules: Rules) -> Callable[[Any], AbstractAsyncContextManager[None]]:
    """Return the lifespan of an application that deletes what is kept too long, once a minute."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(_sweep_for_ever(rules))
        try:
            yield
        finally:
            task.cancel()

    return lifespan


async def sweep(threads: Any, rules: Rules, now: datetime) -> int:
    """Delete what is beyond the rules of `threads`, a client of them; return how many.

    The number is that of each user's, so that nobody's threads go because of somebody else's. A
    thread with a run that works is left to the next time.
    """
    until = now - timedelta(days=rules.thread_days)
    kept: Counter[str] = Counter()
    ended = []
    async for thread in _newest_first(threads):
        owner = (thread["metadata"] or {}).get("owner", "")
        kept[owner] += 1
        surplus = kept[owner] > rules.max_threads or _day(thread["updated_at"]) < until
        if surplus and thread["status"] != _WORKING:
            ended.append(thread["thread_id"])
    for thread_id in ended:
        await threads.delete(thread_id)
    return len(ended)


class TooFastError(CragError):
    """A user has made as many threads within a minute as the rules allow."""

    def __init__(self, most: int) -> None:
        self.most = most
        super().__init__(
            f"you made {most} threads within a minute, and no more are allowed: go on with one of "
            "them, or wait; CRAG_SERVE_THREADS_PER_MINUTE of the server sets how many"
        )


class Pace:
    """Counts the threads that each user makes within a minute, in this process."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._made: dict[str, deque[float]] = {}

    def take(self, user: str) -> None:
        """Count one more thread of a user.

        Raises:
            TooFastError: it would be one too many.
        """
        made, now = self._made.setdefault(user, deque()), self._clock()
        while made and made[0] <= now - MINUTE:
            made.popleft()
        if len(made) >= self._most:
            raise TooFastError(self._most)
        made.append(now)


async def _newest_first(threads: Any) -> AsyncIterator[Any]:
    """Yield all threads; those of a page are the same whatever was deleted, as nothing is yet."""
    place = 0
    while True:
        page = await threads.search(
            sort_by="updated_at", sort_order="desc", limit=_AT_ONCE, offset=place,
            select=["thread_id", "updated_at", "status", "metadata"],
        )  # fmt: skip
        for thread in page:
            yield thread
        if len(page) < _AT_ONCE:
            return
        place += _AT_ONCE


async def _sweep_for_ever(rules: Rules) -> None:
    from langgraph_sdk import get_client

    client = get_client()  # Without an address: this very process.
    while True:
        await asyncio.sleep(_SECONDS)
        with Attempt("deleting old threads"):
            if count := await sweep(client.threads, rules, datetime.now(UTC)):
                logger.info("Deleted %d threads: see CRAG_SERVE_MAX_THREADS", count)


def _day(written: Any) -> datetime:
    """Return when a thread changed; clients get the time as a text, or as it is."""
    return written if isinstance(written, datetime) else datetime.fromisoformat(str(written))

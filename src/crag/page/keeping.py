"""What the server keeps: threads beyond a number or an age are deleted, the oldest first.

LangGraph's development server holds all threads in its memory, and ignores a time to live.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from crag.page.guard import Rules
from crag.runtime.attempt import Attempt

_SECONDS = 60.0
_AT_ONCE = 1000
_WORKING = "busy"

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

    A thread with a run that works is left to the next time.
    """
    surplus = await threads.count() - rules.max_threads
    oldest = await threads.search(
        sort_by="updated_at",
        sort_order="asc",
        limit=_AT_ONCE,
        select=["thread_id", "updated_at", "status"],
    )
    until = now - timedelta(days=rules.thread_days)
    ended = [
        thread["thread_id"]
        for place, thread in enumerate(oldest)
        if thread["status"] != _WORKING and (place < surplus or _day(thread["updated_at"]) < until)
    ]
    for thread in ended:
        await threads.delete(thread)
    return len(ended)


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

"""Politeness towards sites: robots.txt, and few concurrent requests."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from threading import Lock
from time import monotonic
from typing import NamedTuple

from protego import Protego

from crag.errors import PageError
from crag.runtime.waiting import in_thread
from crag.web.addresses import Target
from crag.web.cache import PageCache

ROBOT = "crag"
"""Our user agent in robots.txt."""
SECONDS = 2.0
"""Seconds to fetch and parse one robots.txt."""
MOST_BYTES = 512 * 1024
"""Most bytes of one robots.txt; the standard requires at least 500 KiB."""
_HOURS = 24.0
"""Hours for which a robots.txt is used (RFC 9309, Sec. 2.4)."""
MOST_SITES = 1000
"""Sites whose rules are kept in memory."""

FetchText = Callable[[str], Awaitable[str | None]]
"""Returns the text at a URL, "" if the site has none, None if the request failed."""


class _KnownSite(NamedTuple):
    rules: Protego
    since: float


class Robots:
    """Keep the rules of sites, in memory for a day and in the cache for its own time.

    A site without robots.txt (4xx) allows everything. So does one whose robots.txt cannot be
    fetched (5xx, no connection, too slow, too large): unlike a crawler, which can come back later,
    a question needs its answer now, with at most a few pages of a site. Such a page waits for two
    seconds at most.
    """

    def __init__(self, cache: PageCache | None = None, *, seconds: float = SECONDS) -> None:
        self._cache, self.seconds = cache, seconds
        self._known: dict[str, _KnownSite] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._known)

    async def allows(self, target: Target, hours: float, fetch: FetchText) -> bool:
        """Return whether the site allows us to read `target`; `hours` limits the age of the cache.

        Never raises because of the site.
        """
        known = self._known.get(target.origin)
        if known is None or monotonic() - known.since > _HOURS * 3600:
            known = _KnownSite(await self._rules(target, hours, fetch), monotonic())
            self._remember(target.origin, known)
        return known.rules.can_fetch(target.url, ROBOT)

    async def _rules(self, target: Target, hours: float, fetch: FetchText) -> Protego:
        try:
            async with asyncio.timeout(self.seconds):
                text = await self._text(target, hours, fetch)
                # In a thread, because hostile rules take long to match.
                return await in_thread(Protego.parse, text or "")
        except TimeoutError:
            return Protego.parse("")

    async def _text(self, target: Target, hours: float, fetch: FetchText) -> str | None:
        key = f"robots {target.origin}"
        kept = await in_thread(self._cache.get, key, hours) if self._cache is not None else None
        if kept is not None and isinstance(kept.get("text"), str):
            return str(kept["text"])
        text = await fetch(f"{target.origin}/robots.txt")
        if self._cache is not None and text is not None:
            await in_thread(self._cache.put, key, {"text": text}, hours)
        return text

    def _remember(self, origin: str, known: _KnownSite) -> None:
        with self._lock:
            if len(self._known) >= MOST_SITES:
                self._known.clear()
            self._known[origin] = known


class SitePolicy:
    """The gate of one call: checks robots.txt, and limits concurrent requests to a site.

    Args:
        robots: The rules, shared between calls; None: no check.
        fetch: Fetches a robots.txt.
        hours: Hours for which a cached robots.txt is used.
        at_once: Concurrent requests to one host and port.
    """

    def __init__(
        self, robots: Robots | None, fetch: FetchText, *, hours: float, at_once: int
    ) -> None:
        self._robots, self._fetch, self._hours = robots, fetch, hours
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._slots: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(at_once)
        )

    @asynccontextmanager
    async def enter(self, target: Target) -> AsyncIterator[None]:
        """Let one request through.

        Raises:
            PageError: `robots`, when the site forbids it.
        """
        if self._robots is not None:
            async with self._asking[target.origin]:  # One page fetches it, others of the site wait.
                allowed = await self._robots.allows(target, self._hours, self._fetch)
            if not allowed:
                raise PageError(target.url, "robots", "the site's robots.txt forbids it")
        async with self._slots[target.origin]:
            yield

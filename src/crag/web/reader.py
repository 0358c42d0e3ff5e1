"""A `PageReader` over guarded HTTP."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.parts import Page, ReadingLimits
from crag.runtime.waiting import in_own_loop, in_thread
from crag.text.urls import canonical

if TYPE_CHECKING:
    import httpcore

    from crag.web.guard import Resolver
    from crag.web.visit import Transcribe, Visit, VisitParts


class HttpPageReader:
    """Fetch pages concurrently and transcribe them; a page that fails has its problem.

    Each call has its own connections, so any thread and any event loop can call it.

    Args:
        allow_loopback: Also read sites on this machine (127.0.0.0/8, ::1). Other private addresses
            are never read.
        cache: File that caches pages for `ReadingLimits.cache_hours`; None: no cache.
        resolver: Resolves hosts instead of the operating system.
        connector: Opens connections instead of httpcore.
        transcribe: Turns a body into paragraphs instead of `crag.web.transcribe`.
        longest_wait: Most seconds before a retry, unless the site asks for more and there is time.
        robots_seconds: Most seconds to wait for a site's robots.txt.
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        allow_loopback: bool = False,
        cache: Path | None = None,
        resolver: "Resolver | None" = None,
        connector: "httpcore.AsyncNetworkBackend | None" = None,
        transcribe: "Transcribe | None" = None,
        longest_wait: float = 1.0,
        robots_seconds: float = 2.0,
    ) -> None:
        self._cache, self._transcribe = cache, transcribe
        self._robots_seconds = robots_seconds
        self._options: dict[str, Any] = {
            "allow_loopback": allow_loopback,
            "resolver": resolver,
            "connector": connector,
            "longest_wait": longest_wait,
        }

    def read(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Return one page for each URL, in order; works under a running event loop too."""
        return in_own_loop(self.aread(urls, limits))

    async def aread(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Do the same without blocking the event loop.

        Two spellings of one URL are fetched once; the first one reports the bytes.
        """
        visit = await in_thread(self._visit, limits)
        first: dict[str, str] = {}
        for url in urls:
            first.setdefault(canonical(url), url)
        read = await visit.pages(list(first.values()))
        return list(_for_each(urls, dict(zip(first, read, strict=True))))

    def _visit(self, limits: ReadingLimits) -> "Visit":
        from crag.web.visit import Visit

        return Visit(self._tools, limits)

    @cached_property
    def _tools(self) -> "VisitParts":
        """Loaded before the time for the first pages starts, because the parsers load slowly."""
        from crag.web.cache import PageCache
        from crag.web.robots import Robots
        from crag.web.transcribe import transcribe
        from crag.web.visit import VisitParts

        cache = None if self._cache is None else PageCache(self._cache)
        robots, chosen = Robots(cache, seconds=self._robots_seconds), self._transcribe or transcribe
        return VisitParts(cache=cache, robots=robots, transcribe=chosen, **self._options)


def _for_each(urls: Sequence[str], pages: dict[str, Page]) -> Iterator[Page]:
    """Report the bytes of a page once, however often it was requested."""
    for url in urls:
        page = pages[canonical(url)]
        pages[canonical(url)] = page._replace(fetched_bytes=0)
        yield page._replace(url=url)

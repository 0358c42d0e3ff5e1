"""One visit to the web: the pages of one question, read concurrently under shared limits."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import httpcore

from crag.errors import PageError
from crag.parts import Page, ReadingLimits
from crag.runtime.attempt import Attempt
from crag.runtime.waiting import in_thread
from crag.text.urls import canonical
from crag.web.addresses import refusal_of_host, refused, target_of
from crag.web.bodies import Allowance, PageAllowance
from crag.web.cache import PageCache
from crag.web.fetching import Fetched, Fetcher, FetchError, Terms
from crag.web.guard import Resolver
from crag.web.robots import MOST_BYTES, Robots, SitePolicy
from crag.web.transport import GuardedTransport

if TYPE_CHECKING:
    from crag.web.transcribe import Transcript

_CLIENT_ERRORS = range(400, 500)


Transcribe = Callable[[bytes, str, str], "Transcript"]
"""Turns a body, its content type and its URL into text; raises `PageError`."""


class VisitParts(NamedTuple):
    """What all visits share; see `crag.web.reader.HttpPageReader`."""

    allow_loopback: bool
    cache: PageCache | None
    resolver: Resolver | None
    connector: httpcore.AsyncNetworkBackend | None
    transcribe: Transcribe
    robots: Robots
    longest_wait: float


class Visit:
    """Read the pages of one question once, within one event loop."""

    def __init__(self, tools: VisitParts, limits: ReadingLimits) -> None:
        self._tools, self._limits = tools, limits
        self._transport = GuardedTransport(
            allow_loopback=tools.allow_loopback,
            resolver=tools.resolver,
            connector=tools.connector,
        )
        self._fetcher = Fetcher(self._transport, longest_wait=tools.longest_wait)
        self._policy = SitePolicy(
            tools.robots if limits.robots else None,
            self._robots_text,
            hours=limits.cache_hours,
            at_once=limits.per_site,
        )
        allowance = Allowance(limits.bytes)
        self._shares: defaultdict[str, PageAllowance] = defaultdict(
            lambda: PageAllowance(allowance)
        )

    async def pages(self, urls: Sequence[str]) -> list[Page]:
        """Return one page for each of the distinct `urls`, in order; never raises."""
        tasks: list[asyncio.Task[Page]] = []
        seconds = self._limits.seconds
        async with self._transport:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
                    tasks = [group.create_task(self._page(url)) for url in urls]
        late = PageError("", "timeout", f"not read in the {seconds:g} s for all pages together")
        return [
            self._failed(url, late) if task.cancelled() else task.result()
            for url, task in zip(urls, tasks, strict=True)
        ]

    async def _page(self, url: str) -> Page:
        attempt = Attempt("reading a page")
        with attempt:
            return await self._kept(url) or await self._read_page(url)
        return self._failed(url, attempt.error)

    def _failed(self, url: str, error: Exception | None) -> Page:
        page = Page(url, fetched_bytes=self._shares[url].spent)
        if isinstance(error, PageError):
            return page._replace(problem=error.problem, detail=error.message)
        detail = f"reading it failed: {type(error).__name__}"
        return page._replace(problem="unreadable", detail=detail)

    async def _kept(self, url: str) -> Page | None:
        """Return the page from the cache, unless fetching it is refused.

        Raises:
            PageError: `refused`.
        """
        host = target_of(url).host
        if reason := refusal_of_host(host, allow_loopback=self._tools.allow_loopback):
            raise refused(url, reason)
        if self._tools.cache is None:
            return None
        value = await in_thread(self._tools.cache.get, canonical(url), self._limits.cache_hours)
        return _from_cache(url, value)

    async def _read_page(self, url: str) -> Page:
        until = asyncio.get_running_loop().time() + self._limits.page_seconds
        fetched = await self._fetched(url, until)
        try:
            async with asyncio.timeout_at(until):
                text = await in_thread(
                    self._tools.transcribe, fetched.body, fetched.content_type, fetched.url
                )
        except TimeoutError as error:
            raise PageError(url, "timeout", "its text was not extracted in time") from error
        if not text.paragraphs:
            raise PageError(url, "empty", "it holds no text")
        await self._keep(url, {"title": text.title, "paragraphs": text.paragraphs})
        return Page(url, text.title, tuple(text.paragraphs), self._shares[url].spent)

    async def _fetched(self, url: str, until: float) -> Fetched:
        share = self._shares[url]
        if share.left <= 0:
            raise PageError(url, "budget", "the bytes for all pages together are spent")
        terms = Terms(until, self._limits.page_bytes, share, self._policy.enter)
        return await self._fetcher.fetch(url, terms)

    async def _keep(self, url: str, value: Mapping[str, Any]) -> None:
        if self._tools.cache is not None:
            hours = self._limits.cache_hours
            await in_thread(self._tools.cache.put, canonical(url), value, hours)

    async def _robots_text(self, url: str) -> str | None:
        """Fetch a robots.txt, outside the budget for pages."""
        until = asyncio.get_running_loop().time() + self._tools.robots.seconds
        terms = Terms(until, MOST_BYTES, PageAllowance(Allowance(MOST_BYTES)), types=(), attempts=1)
        try:
            fetched = await self._fetcher.fetch(url, terms)
        except PageError as error:
            absent = isinstance(error, FetchError) and error.status in _CLIENT_ERRORS
            return "" if absent else None
        return fetched.body.decode("utf-8-sig", errors="replace")


def _from_cache(url: str, value: Mapping[str, Any] | None) -> Page | None:
    match value:
        case {"title": str(title), "paragraphs": [*paragraphs]} if paragraphs:
            return Page(url, title, tuple(map(str, paragraphs)), cached=True)
    return None

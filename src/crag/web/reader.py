"""A `PageReader` over guarded HTTP: the pages of one question at the same time, under limits.

Decompression is done here: an HTTP library decompresses a whole chunk from the network before
anyone can count its bytes, and 64 kB may become 64 MB.
"""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from threading import Lock, Thread
from time import monotonic
from typing import NamedTuple

import httpcore
import httpx
from protego import Protego

from crag.errors import PageError
from crag.parts import Page, ReadingLimits
from crag.runtime.calls import Attempt
from crag.web.addresses import target_of
from crag.web.guard import GuardedBackend, Resolver, certificates, resolve
from crag.web.transcribe import READABLE, media_type, transcribe

MOST_REDIRECTS = 5
MOST_ROBOTS_BYTES = 512 * 1024
"""Most bytes of one robots.txt; the standard requires at least 500 KiB."""
MOST_SITES = 1000
"""Sites whose robots.txt is kept in memory."""
USER_AGENT = f"crag/{version('corrective-rag')} (+retrieval for one question)"
_HEADERS = {
    "User-Agent": USER_AGENT, "Accept": ", ".join(READABLE), "Accept-Encoding": "gzip",
}  # fmt: skip
_DAY = 24 * 3600.0
"""Seconds for which a robots.txt is used (RFC 9309, Sec. 2.4)."""


class HttpPageReader:
    """Fetch pages concurrently and transcribe them; a page that fails has its problem.

    Any thread can call it, also under a running event loop.

    Args:
        allow_loopback: Also read sites on this machine (127.0.0.0/8, ::1). Other private addresses
            are never read.
        resolver: Resolves hosts instead of the operating system.
        connector: Opens connections instead of httpcore.
        robots_seconds: Most seconds to wait for a site's robots.txt.
    """

    def __init__(
        self,
        *,
        allow_loopback: bool = False,
        resolver: Resolver = resolve,
        connector: httpcore.NetworkBackend | None = None,
        robots_seconds: float = 2.0,
    ) -> None:
        self.guard = partial(
            GuardedBackend, allow_loopback=allow_loopback, resolver=resolver, connector=connector
        )
        self.robots_seconds = robots_seconds
        self.sites: dict[str, _Site] = {}

    def read(self, urls: Sequence[str], limits: ReadingLimits) -> list[Page]:
        """Return one page for each URL, in order.

        A page that does not end in time, as its name server does not answer or its text takes
        minutes to parse, is given up; its thread is a daemon.
        """
        visit, pages = _Visit(self, limits), dict[str, Page]()

        def work(url: str) -> None:
            pages[url] = visit.page(url)

        threads = [Thread(target=work, args=(url,), daemon=True) for url in dict.fromkeys(urls)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, visit.until - monotonic()))
        late = Page("", problem="timeout", detail=f"not read in {visit.seconds:g} s")
        return [pages.get(url, late)._replace(url=url) for url in urls]


class _Site:
    """The robots.txt of a site; the page that fetches it holds the lock, and others wait."""

    def __init__(self) -> None:
        self.rules, self.until, self.lock = Protego(), 0.0, Lock()


class _Fetched(NamedTuple):
    url: str
    content_type: str
    body: bytes


class _Visit:
    """The requests for one question, without cookies, proxies or credentials."""

    def __init__(self, reader: HttpPageReader, limits: ReadingLimits) -> None:
        self._reader, self._limits = reader, limits
        self.seconds = min(limits.seconds, limits.page_seconds)
        self.until = monotonic() + self.seconds
        self._guard = reader.guard(self.until)

    def page(self, url: str) -> Page:
        """Read one page; never raises."""
        attempt = Attempt("reading a page")
        with attempt:
            found = self.fetch(url, READABLE)
            title, paragraphs = transcribe(found.body, found.content_type, found.url)
            return Page(url, title, paragraphs)
        if isinstance(attempt.error, PageError):
            return Page(url, problem=attempt.error.problem, detail=attempt.error.message)
        detail = f"reading it failed: {type(attempt.error).__name__}"
        return Page(url, problem="unreadable", detail=detail)

    def fetch(self, url: str, types: Sequence[str] = ()) -> _Fetched:
        """Fetch `url` after at most five redirects, each checked like a new URL.

        Raises:
            PageError: for any failure of the server.
        """
        target = target_of(url)
        with httpcore.ConnectionPool(certificates(), network_backend=self._guard) as pool:
            for _ in range(MOST_REDIRECTS + 1):
                found = self._request(pool, target, types)
                if isinstance(found, _Fetched):
                    return found
                target = found
        raise PageError(url, "refused", f"more than {MOST_REDIRECTS} redirects")

    def _request(
        self, pool: httpcore.ConnectionPool, target: httpx.URL, types: Sequence[str]
    ) -> _Fetched | httpx.URL:
        """Return the body, or where the server redirects to."""
        url, sent = str(target), [("Host", target.netloc.decode()), *_HEADERS.items()]
        place = httpcore.URL(
            scheme=target.raw_scheme, host=target.raw_host, port=target.port, target=target.raw_path
        )
        if self._limits.robots and not self._is_allowed(target):
            raise PageError(url, "robots", "the site's robots.txt forbids it")
        with _as_page_errors(url), pool.stream("GET", place, headers=sent) as response:
            status, headers = response.status, httpx.Headers(response.headers)
            if httpx.codes.is_redirect(status) and "location" in headers:
                return target_of(headers["location"], target)
            if status != httpx.codes.OK:
                raise PageError(url, "status", f"the server answered with status {status}")
            content_type = headers.get("content-type", "")
            if types and (kind := media_type(content_type)) not in ("", *types):
                message = f"the content type {kind[:80]!r} is not supported"
                raise PageError(url, "content_type", message)
            return _Fetched(url, content_type, self._body(response, headers, url))

    def _body(self, response: httpcore.Response, headers: httpx.Headers, url: str) -> bytes:
        encoding, limit = headers.get("content-encoding", "").lower(), self._limits.page_bytes
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            message = f"compressed as {encoding[:40]!r}, which was not requested"
            raise PageError(url, "unreadable", message)
        inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if "gzip" in encoding else None
        body, received = bytearray(), 0
        for chunk in response.iter_stream():
            body += inflate.decompress(chunk, limit - len(body) + 1) if inflate else chunk
            received += len(chunk)
            if max(received, len(body)) > limit:
                raise PageError(url, "too_large", f"larger than {limit:,} bytes")
        return bytes(body)

    def _is_allowed(self, target: httpx.URL) -> bool:
        """Return whether its site allows us to read `target`."""
        sites, place = self._reader.sites, str(target.join("/robots.txt"))
        if len(sites) >= MOST_SITES:
            sites.clear()
        site = sites.setdefault(place, _Site())
        with site.lock:
            if monotonic() > site.until:
                site.rules = Protego.parse(self._robots(place))
                site.until = monotonic() + _DAY
        return site.rules.can_fetch(str(target), "crag")

    def _robots(self, url: str) -> str:
        """Return a robots.txt; "" if there is none, or none in time.

        A crawler could come back later; a question needs its answer now, with few pages of a site.
        """
        seconds = min(self.until - monotonic(), self._reader.robots_seconds)
        limits = ReadingLimits(seconds, seconds, MOST_ROBOTS_BYTES, robots=False)
        try:
            body = _Visit(self._reader, limits).fetch(url).body
            return body.decode("utf-8-sig", errors="replace")
        except PageError:
            if monotonic() >= self.until:  # The page is late, and nothing is known of its site.
                raise
            return ""


@contextmanager
def _as_page_errors(url: str) -> Iterator[None]:
    try:
        yield
    except zlib.error as error:
        raise PageError(url, "unreadable", "its compression is damaged") from error
    except httpcore.TimeoutException as error:
        raise PageError(url, "timeout", "no complete answer in time") from error
    except (httpcore.NetworkError, httpcore.ProtocolError) as error:
        message = f"no connection, or it broke: {error or type(error).__name__}"
        raise PageError(url, "network", message) from error

"""Fetch one URL: redirects, retries, status, limits. The guard makes the connections."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from importlib.metadata import version
from typing import NamedTuple

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_random_exponential,
)

from crag.errors import PageError, PageProblem
from crag.web.addresses import Target, redirected, refused, target_of
from crag.web.bodies import ENCODINGS, READABLE, PageAllowance, read_body, readable, sniffed
from crag.web.retries import retry_after

MOST_REDIRECTS = 5
ATTEMPTS = 2
"""Requests for one URL if the first one failed temporarily."""
USER_AGENT = f"crag/{version('corrective-rag')} (+retrieval for one question)"
_HEADERS = {
    "User-Agent": USER_AGENT,
    "Accept": ", ".join(READABLE),
    "Accept-Encoding": ENCODINGS,
}
_REDIRECTS = (301, 302, 303, 307, 308)
_OK, _TOO_MANY = 200, 429
_PASSING_STATUSES = (502, 503, 504)

Gate = Callable[[Target], AbstractAsyncContextManager[None]]
"""Entered around each request; raises `PageError` to prevent fetching a target."""


class Terms(NamedTuple):
    """The limits under which one URL is fetched."""

    until: float
    """Deadline on the event loop's clock."""
    most_bytes: int
    share: PageAllowance
    """Its share of the bytes for all pages."""
    gate: Gate = lambda _: nullcontext()
    types: tuple[str, ...] = READABLE
    """Content types; empty: any."""
    attempts: int = ATTEMPTS


class Fetched(NamedTuple):
    """The body of one URL."""

    url: str
    """The URL after redirects."""
    content_type: str
    """From the server, with parameters; guessed from the body if missing."""
    body: bytes


class FetchError(PageError):
    """One request failed; `status` is the status of the answer, if any.

    `passes` is whether a second request may succeed, `after` the seconds to wait, if known.
    """

    def __init__(  # noqa: PLR0913
        self,
        url: str,
        problem: PageProblem,
        message: str,
        *,
        status: int | None = None,
        passes: bool = False,
        after: float | None = None,
    ) -> None:
        self.status, self.passes, self.after = status, passes, after
        super().__init__(url, problem, message)


class Fetcher:
    """Fetch URLs through a transport, without cookies, proxies or credentials.

    The transport is used directly, because an httpx client would keep cookies and follow redirects.

    Args:
        transport: Normally a `crag.web.transport.GuardedTransport`.
        longest_wait: Most seconds before a second attempt, unless the server asks for more.
    """

    def __init__(self, transport: httpx.AsyncBaseTransport, *, longest_wait: float = 1.0) -> None:
        self._transport = transport
        self._pause = wait_random_exponential(multiplier=longest_wait / 2, max=longest_wait)

    async def fetch(self, url: str, terms: Terms) -> Fetched:
        """Fetch `url` after at most five redirects, each checked like a new URL.

        Raises:
            PageError: For any failure of the server.
        """
        try:
            async with asyncio.timeout_at(terms.until):
                return await self._follow(url, terms)
        except TimeoutError as error:
            raise PageError(url, "timeout", "no complete answer in time") from error

    async def _follow(self, url: str, terms: Terms) -> Fetched:
        target, seen = target_of(url), set[str]()
        while len(seen) <= MOST_REDIRECTS:
            seen.add(target.url)
            answer = await self._with_retry(target, terms)
            if isinstance(answer, Fetched):
                return answer
            if answer.url in seen:
                raise PageError(url, "refused", "its redirects go in a circle")
            target = answer
        raise PageError(url, "refused", f"more than {MOST_REDIRECTS} redirects")

    async def _with_retry(self, target: Target, terms: Terms) -> Fetched | Target:
        again = AsyncRetrying(
            retry=retry_if_exception(lambda error: _can_heal(error, terms.until)),
            stop=stop_after_attempt(terms.attempts),
            wait=self._wait,
            reraise=True,
        )
        return await again(self._request, target, terms)

    def _wait(self, state: RetryCallState) -> float:
        error = state.outcome and state.outcome.exception()
        seconds = error.after if isinstance(error, FetchError) else None
        return (seconds or 0.0) + self._pause(state)

    async def _request(self, target: Target, terms: Terms) -> Fetched | Target:
        async with terms.gate(target):
            with _as_page_errors(target.url):
                request = httpx.Request("GET", target.url, headers=_HEADERS)
                response = await self._transport.handle_async_request(request)
                try:
                    return await _answer(response, target, terms)
                finally:
                    await response.aclose()


async def _answer(response: httpx.Response, target: Target, terms: Terms) -> Fetched | Target:
    """Return the body, or the target of a redirect."""
    location = response.headers.get("location")
    if response.status_code in _REDIRECTS and location is not None:
        return redirected(target, location)
    if response.status_code != _OK:
        raise _status_error(response, target.url)
    content_type = response.headers.get("content-type", "")
    readable(content_type, target.url, terms.types)
    body = await read_body(response, target.url, terms.most_bytes, terms.share)
    if terms.types:
        content_type = sniffed(content_type, body, target.url)
    return Fetched(target.url, content_type, body)


def _status_error(response: httpx.Response, url: str) -> FetchError:
    status, after = response.status_code, retry_after(response.headers.get("retry-after"))
    passes = status in _PASSING_STATUSES or (status == _TOO_MANY and after is not None)
    message = f"the server answered with status {status}"
    return FetchError(url, "status", message, status=status, passes=passes, after=after)


def _can_heal(error: BaseException, until: float) -> bool:
    """Return whether a second request may succeed in time."""
    if not isinstance(error, FetchError) or not error.passes:
        return False
    return asyncio.get_running_loop().time() + (error.after or 0.0) < until


@contextmanager
def _as_page_errors(url: str) -> Iterator[None]:
    """Translate the exceptions of httpx."""
    try:
        yield
    except httpx.InvalidURL as error:
        raise refused(url, "it cannot be read as a URL") from error
    except httpx.TimeoutException as error:
        raise PageError(url, "timeout", "no connection in time") from error
    except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
        message = f"the connection broke: {error or type(error).__name__}"
        raise FetchError(url, "network", message, passes=True) from error
    except httpx.TransportError as error:
        raise PageError(
            url, "network", f"no connection: {error or type(error).__name__}"
        ) from error

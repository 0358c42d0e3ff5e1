"""A search service that answers one HTTP request in JSON: the base of all searchers.

A provider is a subclass that builds the request and reads the reply.
"""

import asyncio
import json
import ssl
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from crag import __version__
from crag.errors import SearchError, SearchProblem
from crag.parts import Hit
from crag.plain import without_credentials
from crag.runtime.waiting import in_own_loop
from crag.web.retries import LONGEST_WAIT, PassingSearchError, patiently, retry_after

if TYPE_CHECKING:
    import httpx

TIMEOUT = 20.0
"""Seconds for one request."""
LARGEST_REPLY = 5_000_000
"""Bytes of one reply, after decompression."""


class JsonSearcher(ABC):
    """Search by one request; redirects are not followed, and temporary failures are retried.

    Rate limits, server errors and timeouts are retried with backoff and jitter, with at most three
    requests in total. `variable` is the environment variable that sets `address`.

    Raises:
        SearchError: the address is not an http(s) URL; `search` or `asearch` failed. `problem` says
            why.
    """

    provider: ClassVar[str]
    """The service's name in messages."""
    refused: ClassVar[str] = ""
    """What to do about HTTP 403, where the service is known to send it for one reason."""
    longest_query: int
    """Characters; longer queries are cut at the end of a word."""

    def __init__(  # noqa: PLR0913 - the options of all services
        self,
        address: str,
        variable: str,
        *,
        path: str = "",
        headers: Mapping[str, str] | None = None,
        contact: str = "",
        timeout: float = TIMEOUT,
        longest_wait: float = LONGEST_WAIT,
    ) -> None:
        address = address_of(self.provider, address, variable)
        self.address = address if address.endswith(path) else f"{address}{path}"
        self._shown = without_credentials(self.address, queries=False)
        self._timeout = timeout
        known = {"Accept": "application/json", "User-Agent": user_agent(contact)}
        self._headers = {**known, **(headers or {})}
        self._patiently = patiently(longest_wait)(self._ask)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown!r})"

    @abstractmethod
    def request(self, query: str, limit: int) -> Mapping[str, Any]:
        """Return the request as httpx takes it: `method`, `params` or `json`, another `url`."""

    @abstractmethod
    def hits(self, reply: Mapping[str, Any]) -> list[Hit]:
        """Read the hits of a reply, best first.

        Raises:
            SearchError: the service reports an error.
            KeyError, TypeError: the reply has another form.
        """

    def search(self, query: str, limit: int) -> list[Hit]:
        """Return at most `limit` hits, best first; works under a running event loop too."""
        return in_own_loop(self.asearch(query, limit))

    async def asearch(self, query: str, limit: int) -> list[Hit]:
        """Do the same without blocking the event loop."""
        shortened = query_of(self.provider, query, self.longest_query)
        return (await self._patiently(self.request(shortened, limit)))[:limit]

    async def _ask(self, request: Mapping[str, Any]) -> list[Hit]:
        import httpx

        body, trusted = bytearray(), await asyncio.to_thread(certificates)
        with self._failures():
            async with (
                httpx.AsyncClient(
                    verify=trusted, timeout=self._timeout, headers=self._headers
                ) as client,
                asyncio.timeout(self._timeout),
                client.stream(**{"url": self.address, **request}) as response,
            ):
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > LARGEST_REPLY:
                        raise self._error("the reply is too large")
        return self._hits(response, body)

    def _hits(self, response: "httpx.Response", body: bytearray) -> list[Hit]:
        if response.is_redirect:
            target = without_credentials(response.headers["Location"], queries=False)[:200]
            message = f"the server redirects to {target}: use the final address"
            raise self._error(message, "request")
        if not response.is_success:
            raise self._failure(response)
        try:
            reply = json.loads(body)
            if isinstance(reply, dict):
                return self.hits(reply)
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise self._unreadable() from error
        raise self._unreadable()

    def _failure(self, response: "httpx.Response") -> SearchError:
        """Return the error for an unsuccessful status."""
        status, wait = response.status_code, retry_after(response.headers.get("Retry-After"))
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            message = "too many requests, or the quota is used up: try again later"
            return PassingSearchError(self.provider, "quota", message, wait)
        if status == HTTPStatus.REQUEST_TIMEOUT:
            return self._too_slow()
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            message = f"the server failed (HTTP {status}): try again later"
            return PassingSearchError(self.provider, "server", message, wait)
        if status == HTTPStatus.UNAUTHORIZED:
            return self._error("the server asks for a valid key or password", "key")
        is_known = status == HTTPStatus.FORBIDDEN and self.refused
        message = self.refused if is_known else f"the request was not accepted (HTTP {status})"
        return self._error(message, "request")

    def _too_slow(self) -> SearchError:
        return PassingSearchError(self.provider, "timeout", "no answer in time: try again later")

    def _unreadable(self) -> SearchError:
        return self._error("the reply cannot be read: check the address")

    def _unreachable(self) -> SearchError:
        return self._error(f"{self._shown} cannot be reached: check the address and the network")

    def _broken_off(self, error: Exception) -> SearchError:
        return self._error(f"the connection failed ({type(error).__name__}): try again later")

    def _error(self, message: str, problem: SearchProblem = "server") -> SearchError:
        return SearchError(self.provider, problem, message)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Translate the exceptions of the HTTP library."""
        import httpx

        try:
            yield
        except (httpx.TimeoutException, TimeoutError) as error:
            raise self._too_slow() from error
        except (httpx.ConnectError, httpx.ProxyError, httpx.InvalidURL) as error:
            raise self._unreachable() from error
        except httpx.HTTPError as error:
            raise self._broken_off(error) from error


def query_of(provider: str, query: str, longest: int) -> str:
    """Return the query on one line, cut at the end of a word to at most `longest` characters.

    Raises:
        SearchError: the query is empty.
    """
    encodable = query.encode("utf-8", errors="ignore").decode()
    line = " ".join(encodable.replace("\0", " ").split())
    if not line:
        raise SearchError(provider, "request", "the query is empty")
    if len(line) <= longest:
        return line
    return line[: longest + 1].rpartition(" ")[0] or line[:longest]


def address_of(provider: str, url: str, variable: str) -> str:
    """Return the address of a service without a trailing slash.

    Raises:
        SearchError: it is not an http(s) URL; the message names its variable.
    """
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        message = f"{variable} must be an address such as https://search.example.org"
        raise SearchError(provider, "request", message)
    return url.strip().rstrip("/")


@cache
def certificates() -> ssl.SSLContext:
    """Return the certificates that connections trust; loading them takes longer than a request."""
    import httpx

    return httpx.create_ssl_context()


def user_agent(contact: str = "") -> str:
    """Return the user agent that Wikimedia's policy requires: name, version, contact."""
    import httpx

    written = "".join(c for c in contact if c.isascii() and c.isprintable() and c not in "()")
    about = f"Corrective RAG; {written}" if written.strip() else "Corrective RAG"
    return f"corrective-rag/{__version__} ({about}) httpx/{httpx.__version__}"

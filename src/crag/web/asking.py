"""Shared by all search services: addresses, queries, and errors."""

from http import HTTPStatus
from urllib.parse import urlsplit, urlunsplit

from crag.errors import SearchError
from crag.web.retries import PassingSearchError, retry_after

TIMEOUT = 20.0
"""Seconds for one request."""


def failure_of(provider: str, status: int, wait: str | None = None) -> SearchError:
    """Return the error for an unsuccessful HTTP status; `wait` is its Retry-After."""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        message = "too many requests, or the quota is used up: try again later"
        return PassingSearchError(provider, "quota", message, retry_after(wait))
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return too_slow(provider)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        message = f"the server failed (HTTP {status}): try again later"
        return PassingSearchError(provider, "server", message, retry_after(wait))
    if status == HTTPStatus.UNAUTHORIZED:
        return SearchError(provider, "key", "the server asks for a valid key or password")
    return SearchError(provider, "request", f"the request was not accepted (HTTP {status})")


def too_slow(provider: str) -> SearchError:
    """Return the error for a service that did not answer in time."""
    return PassingSearchError(provider, "timeout", "no answer in time: try again later")


def unreachable(provider: str, address: str) -> SearchError:
    """Return the error for a service that cannot be reached."""
    message = f"{shown(address)} cannot be reached: check the address and the network"
    return SearchError(provider, "server", message)


def broken_off(provider: str, error: Exception) -> SearchError:
    """Return the error for a connection that broke before the reply was complete."""
    message = f"the connection failed ({type(error).__name__}): try again later"
    return SearchError(provider, "server", message)


def unreadable(provider: str) -> SearchError:
    """Return the error for a reply in an unexpected format."""
    return SearchError(provider, "server", "the reply cannot be read: check the address")


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


def shown(address: str) -> str:
    """Return the address for messages, without a user name and password."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "an unreadable address"
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

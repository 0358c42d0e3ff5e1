"""One GET request to a search service, answered in JSON; sync and async."""

import asyncio
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from crag import __version__
from crag.errors import SearchError
from crag.web.asking import (
    broken_off,
    failure_of,
    shown,
    too_slow,
    unreachable,
    unreadable,
)

if TYPE_CHECKING:
    import httpx

LARGEST_REPLY = 5_000_000
"""Bytes of one reply, after decompression."""


class JsonService:
    """Call one address and read its replies; redirects are not followed.

    `refused` is the message to the user if the service answers with status 403.

    Raises:
        SearchError: `get` or `aget` did not receive a JSON object.
    """

    def __init__(
        self, provider: str, address: str, *, timeout: float, refused: str, contact: str = ""
    ) -> None:
        self.provider, self.address = provider, address
        self._timeout, self._refused = timeout, refused
        headers = {"Accept": "application/json", "User-Agent": user_agent(contact)}
        self._options: dict[str, Any] = {"timeout": timeout, "headers": headers}

    def get(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object of the reply."""
        import httpx

        body, end = bytearray(), time.monotonic() + self._timeout
        with (
            self._failures(),
            httpx.Client(verify=certificates(), **self._options) as client,
            client.stream("GET", self.address, params=parameters) as response,
        ):
            self._accept(response)
            for piece in response.iter_bytes():
                self._collect(body, piece)
                if time.monotonic() > end:
                    raise too_slow(self.provider)
        return self._read(body)

    async def aget(self, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Do the same without blocking the event loop."""
        import httpx

        body, trusted = bytearray(), await asyncio.to_thread(certificates)
        with self._failures():
            async with (
                httpx.AsyncClient(verify=trusted, **self._options) as client,
                asyncio.timeout(self._timeout),
                client.stream("GET", self.address, params=parameters) as response,
            ):
                self._accept(response)
                async for piece in response.aiter_bytes():
                    self._collect(body, piece)
        return self._read(body)

    def _accept(self, response: "httpx.Response") -> None:
        status, headers = response.status_code, response.headers
        if response.is_redirect:
            target = shown(headers["Location"])[:200]
            message = f"the server redirects to {target}: use the final address"
            raise SearchError(self.provider, "request", message)
        if status == HTTPStatus.FORBIDDEN:
            raise SearchError(self.provider, "request", self._refused)
        if status != HTTPStatus.OK:
            raise failure_of(self.provider, status, headers.get("Retry-After"))

    def _collect(self, body: bytearray, piece: bytes) -> None:
        body.extend(piece)
        if len(body) > LARGEST_REPLY:
            raise SearchError(self.provider, "server", "the reply is too large")

    def _read(self, body: bytearray) -> dict[str, Any]:
        try:
            reply = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise unreadable(self.provider) from error
        if not isinstance(reply, dict):
            raise unreadable(self.provider)
        return reply

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Translate the exceptions of the HTTP library."""
        import httpx

        try:
            yield
        except (httpx.TimeoutException, TimeoutError) as error:
            raise too_slow(self.provider) from error
        except (httpx.ConnectError, httpx.ProxyError, httpx.InvalidURL) as error:
            raise unreachable(self.provider, self.address) from error
        except httpx.HTTPError as error:
            raise broken_off(self.provider, error) from error


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

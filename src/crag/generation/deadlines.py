"""HTTP clients for chat models that wait no longer than they were told, in any event loop.

The timeouts of a client bound each wait for the next byte, so a server that writes forever, or only
keeps the connection alive, is never too late for them. A deadline bounds the whole call, with its
repetitions.
"""

import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar

import httpx

_DEADLINE: ContextVar[float] = ContextVar("crag_deadline")
_REPETITION = "x-stainless-retry-count"
"""Header of openai's client, which counts the repetitions of a call from 0."""


def sync_client(silence: float, total: float) -> httpx.Client:
    """Return a client that waits `silence` seconds for each byte and `total` for a whole call."""

    def begin(request: httpx.Request) -> None:
        _begin(request, total)

    def limit(response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.SyncByteStream)  # noqa: S101 - for type checkers
        response.stream = _Stream(response.stream, response.request, total)

    return httpx.Client(
        timeout=silence,
        follow_redirects=True,
        event_hooks={"request": [begin], "response": [limit]},
    )


def async_client(silence: float, total: float) -> httpx.AsyncClient:
    """Return the same for callers that await.

    It keeps no connection open: one that was opened in another event loop, such as that of an
    earlier `asyncio.run`, can no longer be used.
    """

    async def begin(request: httpx.Request) -> None:
        _begin(request, total)

    async def limit(response: httpx.Response) -> None:
        assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - as above
        response.stream = _AsyncStream(response.stream, response.request, total)

    return httpx.AsyncClient(
        timeout=silence,
        follow_redirects=True,
        limits=httpx.Limits(max_keepalive_connections=0),
        event_hooks={"request": [begin], "response": [limit]},
    )


def _begin(request: httpx.Request, total: float) -> None:
    if request.headers.get(_REPETITION, "0") == "0":
        _DEADLINE.set(time.monotonic() + total)
    _check(_DEADLINE.get(float("inf")), request, total)


def _check(deadline: float, request: httpx.Request, total: float) -> None:
    if time.monotonic() > deadline:
        message = f"the reply did not end within {total:g} seconds"
        raise httpx.ReadTimeout(message, request=request)


class _Stream(httpx.SyncByteStream):
    def __init__(self, inner: httpx.SyncByteStream, request: httpx.Request, total: float) -> None:
        self._inner, self._request, self._total = inner, request, total
        self._deadline = _DEADLINE.get(float("inf"))

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inner:
            _check(self._deadline, self._request, self._total)
            yield piece

    def close(self) -> None:
        self._inner.close()


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream, request: httpx.Request, total: float) -> None:
        self._inner, self._request, self._total = inner, request, total
        self._deadline = _DEADLINE.get(float("inf"))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            _check(self._deadline, self._request, self._total)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()

"""HTTP clients for chat models that wait no longer than they were told, in any event loop.

The timeouts of a client bound each wait for the next byte, so a server that writes forever, or only
keeps the connection alive, is never too late for them. A deadline bounds the whole call, with its
repetitions.
"""

import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import httpx

_DEADLINE: ContextVar[float] = ContextVar("crag_deadline")
_REPETITION = "x-stainless-retry-count"
"""Header of openai's client, which counts the repetitions of a call from 0."""


def clients(silence: float, total: float) -> tuple[httpx.Client, httpx.AsyncClient]:
    """Return clients that wait `silence` seconds for each byte and `total` for a whole call.

    The async one keeps no connection open: one that was opened in another event loop, such as that
    of an earlier `asyncio.run`, can no longer be used.
    """

    def begin(request: httpx.Request) -> None:
        if request.headers.get(_REPETITION, "0") == "0":
            _DEADLINE.set(time.monotonic() + total)
        _check(_DEADLINE.get(float("inf")), request)

    def limit(response: httpx.Response) -> None:
        response.stream = _Stream(response.stream, response.request)

    async def begin_async(request: httpx.Request) -> None:
        begin(request)

    async def limit_async(response: httpx.Response) -> None:
        limit(response)

    return (
        httpx.Client(
            timeout=silence,
            follow_redirects=True,
            event_hooks={"request": [begin], "response": [limit]},
        ),
        httpx.AsyncClient(
            timeout=silence,
            follow_redirects=True,
            limits=httpx.Limits(max_keepalive_connections=0),
            event_hooks={"request": [begin_async], "response": [limit_async]},
        ),
    )


def _check(deadline: float, request: httpx.Request) -> None:
    if time.monotonic() > deadline:
        raise httpx.ReadTimeout("the reply did not end in time", request=request)


class _Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """The body of a response, until the deadline of its call."""

    def __init__(self, inner: Any, request: httpx.Request) -> None:
        self._inner, self._request = inner, request
        self._deadline = _DEADLINE.get(float("inf"))

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._inner:
            _check(self._deadline, self._request)
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            _check(self._deadline, self._request)
            yield piece

    def close(self) -> None:
        self._inner.close()

    async def aclose(self) -> None:
        await self._inner.aclose()

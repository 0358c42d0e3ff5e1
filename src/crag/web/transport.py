"""The guard inside httpx."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpcore
import httpx

from crag.web.addresses import target_of
from crag.web.guard import GuardedBackend, Resolver
from crag.web.searcher import certificates

_HTTPCORE_ERRORS = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Send requests to public addresses only: HTTP/1.1, no proxy, no cookies, no redirects.

    Args:
        allow_loopback: Allow 127.0.0.0/8 and ::1 (tests, sites on the same machine); other private
            addresses are still refused.
        resolver: Resolves addresses instead of the operating system.
        connector: Opens the connections instead of httpcore's own backend.
    """

    def __init__(
        self,
        *,
        allow_loopback: bool = False,
        resolver: Resolver | None = None,
        connector: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        backend = GuardedBackend(
            allow_loopback=allow_loopback, resolver=resolver, connector=connector
        )
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=certificates(), network_backend=backend
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request.

        Raises:
            PageError: `refused`, for a URL or an address that must not be fetched.
            httpx.TransportError: As any transport of httpx.
        """
        target_of(str(request.url))
        sent = httpcore.Request(
            request.method,
            httpcore.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_httpx_errors():
            answer = await self._pool.handle_async_request(sent)
        return httpx.Response(answer.status, headers=answer.headers, stream=_ResponseBody(answer))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _ResponseBody(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx_errors():
            async for part in self._answer.aiter_stream():
                yield part

    async def aclose(self) -> None:
        with _as_httpx_errors():
            await self._answer.aclose()


@contextmanager
def _as_httpx_errors() -> Iterator[None]:
    """Translate errors of httpcore, which have the same names in httpx."""
    try:
        yield
    except _HTTPCORE_ERRORS as error:
        raise getattr(httpx, type(error).__name__)(str(error)) from error

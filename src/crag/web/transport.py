"""The guard inside httpx."""

import httpcore
import httpx

from crag.web.addresses import target_of
from crag.web.guard import GuardedBackend, Resolver
from crag.web.searcher import certificates


class GuardedTransport(httpx.AsyncHTTPTransport):
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
        # httpx takes no backend, so this is all that its class has: there is no unguarded pool
        # that another version, which names it otherwise, could use instead.
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
        return await super().handle_async_request(request)

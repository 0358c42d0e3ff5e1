"""The guard: connect only to addresses that were checked.

A check before the request could be bypassed by a name that resolves differently a moment later.
Here the name is resolved once, all of its addresses are checked, and the connection goes to one of
them. TLS and the Host header keep the name.
"""

import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, cast

import httpcore

from crag.runtime.waiting import in_thread
from crag.web.addresses import is_address, refusal_of_address, refusal_of_host, refused

MOST_ADDRESSES = 3
"""Most addresses of one name to try, one after another."""
CONNECT_SECONDS = 4.0
"""Seconds for one attempt to connect to one address."""


Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a host for a port as text, best first; raises `OSError` if there are
none."""


async def resolve(host: str, port: int) -> list[str]:
    """Resolve a host with the operating system."""
    entries = await in_thread(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def plain_connector() -> httpcore.AsyncNetworkBackend:
    """Return the default network backend, which checks nothing."""
    # httpcore defines the class twice, in case anyio is missing; httpx installs it.
    return cast("httpcore.AsyncNetworkBackend", httpcore.AnyIOBackend())


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connect to public addresses only.

    Raises:
        PageError: `refused`, from `connect_tcp`, before any connection is made.
    """

    def __init__(
        self,
        *,
        allow_loopback: bool = False,
        resolver: Resolver | None = None,
        connector: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        self._allow_loopback = allow_loopback
        self._resolver = resolver or resolve
        self._connector = connector or plain_connector()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first of the host's addresses that answers, if all of them are allowed."""
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        seconds = CONNECT_SECONDS if timeout is None else min(timeout, CONNECT_SECONDS)
        for address in (await self._addresses(host, port))[:MOST_ADDRESSES]:
            try:
                return await self._connector.connect_tcp(
                    address, port, seconds, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """Resolve and check the host; one refused address refuses the host."""
        if reason := refusal_of_host(host, allow_loopback=self._allow_loopback):
            raise refused(host, reason)
        try:
            addresses = [host] if is_address(host) else await self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved") from error
        for address in addresses:
            if reason := refusal_of_address(address, allow_loopback=self._allow_loopback):
                raise refused(host, reason)
        return addresses

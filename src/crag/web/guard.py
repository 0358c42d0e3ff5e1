"""The guard: connect only to addresses that were checked, and only until a moment.

A check before the request could be bypassed by a name that resolves differently a moment later.
Here the name is resolved once, all of its addresses are checked, and the connection goes to one of
them. TLS and the Host header keep the name.
"""

import re
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import cache
from time import monotonic
from typing import Any

import httpcore
import httpx

from crag.web.addresses import is_public, refused

CONNECT_SECONDS = 4.0
"""Seconds for one attempt to connect to one address."""
_LOCAL_NAME = re.compile(
    r"^[^.:]*\.?$|\.(localhost|local|internal|localdomain|lan|intranet|corp|home|private|arpa)\.?$"
)
Resolver = Callable[[str, int], Sequence[str]]
"""Returns the IP addresses of a host for a port, best first; raises `OSError` if there are none."""


def resolve(host: str, port: int) -> list[str]:
    """Resolve a host with the operating system."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


@cache
def certificates() -> ssl.SSLContext:
    """Return the certificates that connections trust; loading them takes longer than a request."""
    return httpx.create_ssl_context()


class GuardedBackend(httpcore.NetworkBackend):
    """Connect to public addresses only; all connections end at `until`, by `time.monotonic`.

    Raises:
        PageError: `refused`, from `connect_tcp`, before any connection is made.
    """

    def __init__(
        self,
        until: float,
        *,
        allow_loopback: bool = False,
        resolver: Resolver = resolve,
        connector: httpcore.NetworkBackend | None = None,
    ) -> None:
        self.until, self._allow_loopback = until, allow_loopback
        self._resolver, self._connector = resolver, connector or httpcore.SyncBackend()

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.NetworkStream:
        """Connect to the first of the host's addresses that answers, if all of them are allowed."""
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in self._addresses(host, port):
            seconds = min(_left(self.until), CONNECT_SECONDS)
            try:
                stream = self._connector.connect_tcp(address, port, seconds)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return _EndingStream(stream, self.until)
        raise failure

    def _addresses(self, host: str, port: int) -> Sequence[str]:
        """Resolve and check the host; one refused address refuses the host."""
        if _LOCAL_NAME.search(host) and not self._allow_loopback:
            raise refused(host, "its name is one of the local network")
        try:
            addresses = self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved") from error
        if not all(is_public(one, allow_loopback=self._allow_loopback) for one in addresses):
            raise refused(host, "it leads to an address that is not public")
        return addresses


class _EndingStream(httpcore.NetworkStream):
    """A connection that ends at a moment: one that brings a byte a second never times out."""

    def __init__(self, stream: httpcore.NetworkStream, until: float) -> None:
        self._stream, self._until = stream, until

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def read(self, max_bytes: int, *_: Any, **__: Any) -> bytes:
        return self._stream.read(max_bytes, _left(self._until))

    def write(self, buffer: bytes, *_: Any, **__: Any) -> None:
        self._stream.write(buffer, _left(self._until))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, *_: Any, **__: Any
    ) -> "_EndingStream":
        secured = self._stream.start_tls(ssl_context, server_hostname, _left(self._until))
        return _EndingStream(secured, self._until)


def _left(until: float) -> float:
    if (seconds := until - monotonic()) > 0:
        return seconds
    raise httpcore.ReadTimeout("the time is over")

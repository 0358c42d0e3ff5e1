"""The address that a server listens on."""

import errno
from typing import NamedTuple

from crag.errors import CragError

ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where a server that listens everywhere is found
"""Hosts that stand for all addresses of this machine, with one of them."""


class ServerError(CragError):
    """The server cannot be started; the message says what to change."""


class Address(NamedTuple):
    """Where the server listens."""

    host: str
    port: int

    @property
    def url(self) -> str:
        """The address for a browser on this machine."""
        host = ANY.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is within reach of this machine alone."""
        import socket
        from ipaddress import ip_address

        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        return all(ip_address(place[0]).is_loopback for *_, place in found)


def require_port(address: Address) -> None:
    """Refuse a port that cannot be listened on; LangGraph's server would take another one silently.

    Raises:
        ServerError: it is taken, needs rights, or the host is none of this machine.
    """
    import socket

    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(place)
    except OSError as error:
        raise ServerError(_why_not(error, address)) from error


def _why_not(error: OSError, address: Address) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            what = f"port {address.port} is taken; end what uses it, or choose another with --port"
        case errno.EACCES:
            what = f"port {address.port} needs rights that you lack; choose one above 1023"
        case _:
            what = f"{address.host!r} is no address of this machine; choose another with --host"
    return f"cannot serve: {what}"

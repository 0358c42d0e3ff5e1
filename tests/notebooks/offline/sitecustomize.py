"""Refuse every connection that would leave this machine, in whichever process starts here."""

import sys
from ipaddress import ip_address
from typing import Any

_EVENTS = {"socket.connect": 1, "socket.getaddrinfo": 0, "socket.sendto": 1}
"""Audit events, and which of their arguments names the other side."""


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in _EVENTS:
        return
    other = arguments[_EVENTS[event]]
    host = other[0] if isinstance(other, tuple) else other
    if event != "socket.getaddrinfo" and not isinstance(other, tuple):
        return  # A socket in the file system.
    if host and not _is_here(host):
        raise ConnectionRefusedError(f"this run is offline, but {host!r} was asked for")


def _is_here(host: str | bytes) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    try:
        return ip_address(name).is_loopback or ip_address(name).is_unspecified
    except ValueError:
        return name == "localhost"


sys.addaudithook(_refuse)

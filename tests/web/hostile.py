"""URLs that must never be connected to, names that lie, and a record of every connection."""

import socket
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote

import httpcore

from crag.parts import ReadingLimits

PUBLIC = "93.184.216.34"
"""Passes every check; the recorder leads it to the test's site instead."""
PUBLIC_6 = "2606:2800:220:1:248:1893:25c8:1946"
LIMITS = ReadingLimits(seconds=60, page_seconds=30, page_bytes=1_000_000, robots=False)

NAMES: dict[str, list[list[str]]] = {
    "public.example": [[PUBLIC]],
    "private.example": [["10.1.2.3"]],
    "loopback.example": [["127.0.0.1"]],
    "one-of-several.example": [[PUBLIC, "192.168.1.1", PUBLIC]],
    "last-of-several.example": [[PUBLIC, PUBLIC_6, "::1"]],
    "six.example": [["::1"]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "nat64.example": [["64:ff9b::7f00:1"]],
    "scoped.example": [["fe80::1%lo"]],
    "metadata.example": [["169.254.169.254"]],
    "metadata.google.internal": [[PUBLIC]],
    "localhost": [["127.0.0.1"]],
    "printer.local": [[PUBLIC]],
    "intranet": [[PUBLIC]],
    "nonsense.example": [["2130706433"]],
    "xn--bcher-kva.example": [["127.0.0.1"]],
    "turning.example": [[PUBLIC], ["127.0.0.1"]],
}
"""What each name resolves to, call by call; the last answer stays."""

HOSTILE = (
    # Loopback, written as IPv4 may be written
    "http://127.0.0.1:{port}/", "http://127.1.2.3:{port}/", "http://2130706433:{port}/",
    "http://0x7f000001:{port}/", "http://0X7F.0.0.1:{port}/", "http://0x7f.1:{port}/",
    "http://0177.0.0.1:{port}/", "http://017700000001:{port}/", "http://0000177.0.0.01:{port}/",
    "http://127.1:{port}/", "http://127.0.1:{port}/", "http://127.0.0.1.:{port}/",
    "http://127.0.0.0x1:{port}/", "http://425.510.425.510:{port}/", "http://0:{port}/",
    "http://0.0.0.0:{port}/", "http://①②⑦.⓪.⓪.①:{port}/", "http://１２７.０.０.１:{port}/",
    "http://127。0。0。1:{port}/", "http://127．0．0．1:{port}/", "http://١٢٧.٠.٠.١:{port}/",
    "http://127%2e0%2e0%2e1:{port}/",
    # Loopback as IPv6, and IPv4 inside it
    "http://[::1]:{port}/", "http://[0:0:0:0:0:0:0:1]:{port}/", "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/", "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/", "http://[2002:7f00:1::]:{port}/",
    "http://[2002:a9fe:a9fe::1]:{port}/", "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b::a00:1]:{port}/", "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]:{port}/", "http://[::1%25lo]:{port}/",
    "http://[fe80::1%25eth0]:{port}/", "http://[fe80::1]:{port}/",
    "http://[::1]evil.example:{port}/",
    # Private and special networks
    "http://10.0.0.1:{port}/", "http://172.16.0.1:{port}/", "http://192.168.0.1:{port}/",
    "http://100.64.0.1:{port}/", "http://169.254.1.1:{port}/", "http://192.0.0.8:{port}/",
    "http://198.18.0.1:{port}/", "http://203.0.113.5:{port}/", "http://224.0.0.1:{port}/",
    "http://240.0.0.1:{port}/", "http://255.255.255.255:{port}/", "http://[fc00::1]:{port}/",
    "http://[fd12:3456::1]:{port}/", "http://[ff02::1]:{port}/", "http://[2001:db8::1]:{port}/",
    "http://[fec0::1]:{port}/",
    # Metadata services of clouds
    "http://169.254.169.254/latest/meta-data/", "http://2852039166/latest/meta-data/",
    "http://0xa9fea9fe/latest/meta-data/", "http://[::ffff:169.254.169.254]/latest/meta-data/",
    "http://[fd00:ec2::254]/latest/meta-data/", "http://100.100.100.200/latest/meta-data/",
    "http://168.63.129.16/machine/", "http://metadata.google.internal/computeMetadata/v1/",
    "http://metadata/computeMetadata/v1/",
    # Names of the local network
    "http://localhost:{port}/", "http://LOCALHOST:{port}/", "http://localhost.:{port}/",
    "http://ｌｏｃａｌｈｏｓｔ:{port}/", "http://a.localhost:{port}/", "http://printer.local:{port}/",
    "http://intranet:{port}/",
    # Names that lead inside
    "http://private.example:{port}/", "http://loopback.example:{port}/",
    "http://LoopBack.Example.:{port}/", "http://one-of-several.example:{port}/",
    "http://last-of-several.example:{port}/", "http://six.example:{port}/",
    "http://mapped.example:{port}/", "http://nat64.example:{port}/",
    "http://scoped.example:{port}/", "http://metadata.example:{port}/",
    "http://nonsense.example:{port}/", "http://bücher.example:{port}/",
    # Other schemes
    "file:///etc/passwd", "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/_GET",
    "data:text/html,<p>here</p>", "javascript:alert(1)", "ws://public.example:{port}/",
    "unix:///var/run/docker.sock",
    # User names, and what one parser takes for a user name and another for a host
    "http://user:password@public.example:{port}/", "http://user@public.example:{port}/",
    "http://public.example@127.0.0.1:{port}/", "http://127.0.0.1:{port}@public.example/",
    "http://public.example\\@127.0.0.1:{port}/", "http://127.0.0.1:{port}\\@public.example/",
    # No host, no port, and what does not belong in a URL
    "http://:{port}/", "http://public.example:0/", "http://public.example:99999/",
    "http://public.example:80:{port}/", "http://[::1/", "http://public..example:{port}/",
    "http://public.exa mple:{port}/", "http://public\u200b.example:{port}/",
)  # fmt: skip
ONLY_AS_HITS = (
    "http:\\\\127.0.0.1:{port}\\", "http://public.example:{port}/\x7f", "http:127.0.0.1:{port}",
    "http:/127.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "http://127.0.0.1\t:{port}/",
    "http://public.example:{port}/\r\nHost: 127.0.0.1",
    "http://public.example\x00.127.0.0.1:{port}/", "ht\ntp://127.0.0.1:{port}/", "", " ",
    "public.example", "//127.0.0.1:{port}/", "/etc/passwd", "http://",
    "http://public.example:{port}/\ud800",
    "http://public\udfff.example:{port}/",
)  # fmt: skip
"""Hostile as URLs of a hit only: no header can carry them, or they mean another thing in one."""


def redirect(to: str) -> str:
    """Return the path at which the test's site redirects to `to`, non-ASCII text as UTF-8."""
    return "/redirect?to=" + quote(to.encode().decode("latin-1"))


class Names:
    """A resolver that reads `NAMES`, and counts."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = NAMES.get(host.removesuffix("."))
        if answers is None:  # Addresses in any notation; everything else is not known.
            found = socket.getaddrinfo(host, port, flags=socket.AI_NUMERICHOST)
            return [str(entry[4][0]) for entry in found]
        return answers[min(self.asked.count(host), len(answers)) - 1]


class Recorder(httpcore.NetworkBackend):
    """Record each address that is connected to, at the lowest call, and connect.

    The public addresses lead to 127.0.0.1; of the others only those of this machine are reached.
    """

    def __init__(self) -> None:
        self.addresses: list[str] = []
        self.unreachable: set[str] = set()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *_: Any, **__: Any
    ) -> httpcore.NetworkStream:
        self.addresses.append(host)
        is_near = host in (PUBLIC, PUBLIC_6) or ip_address(host).is_loopback
        if host in self.unreachable or not is_near:
            raise httpcore.ConnectError("not there")
        place = "127.0.0.1" if host in (PUBLIC, PUBLIC_6) else host
        return httpcore.SyncBackend().connect_tcp(place, port, timeout)


def transcribed(body: bytes, content_type: str, url: str) -> tuple[str, tuple[str, ...]]:
    """Return the body as it is; the title is type and URL."""
    return f"{content_type} {url}", (body.decode("latin-1"),)

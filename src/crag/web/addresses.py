"""Which URLs and IP addresses may be fetched: pure checks, without any network.

This protects the network that crag runs in: only public addresses are reached. Any port is allowed,
since a public service is public on all of its ports.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpx

from crag.errors import PageError

_PORTS = range(1, 65_536)
_NAT64 = ip_network("64:ff9b::/96")
_IPV6_UNICAST = ip_network("2000::/3")
_NOT_PUBLIC = (
    ip_network("168.63.129.16/32"),  # Azure's metadata service
    ip_network("192.0.0.0/24"),  # protocols
    ip_network("192.88.99.0/24"),  # relays of 6to4
    ip_network("2001::/23"),  # protocols, such as Teredo
    ip_network("2002::/16"),  # 6to4, which holds an IPv4 address
    ip_network("3fff::/20"),  # documentation
)
"""Blocks that `ipaddress` takes for global, at least in part or in some versions of Python."""


def target_of(url: str, source: httpx.URL | None = None) -> httpx.URL:
    """Parse and check one URL, relative to the `source` that redirects to it.

    What is fetched is what was parsed here. The guard checks the host, when it connects.

    Raises:
        PageError: `refused`, with the reason in `message`.
    """
    try:
        target = source.join(url) if source else httpx.URL(url.strip(" "))
    except (httpx.InvalidURL, ValueError) as error:  # Half a surrogate pair is a ValueError.
        raise refused(url, "it cannot be read as a URL") from error
    if target.scheme not in ("http", "https"):
        raise refused(url, "only http and https are fetched")
    if target.userinfo:
        raise refused(url, "it holds a user name or password")
    if not target.host or (target.port is not None and target.port not in _PORTS):
        raise refused(url, "it has no host, or no port")
    if source and source.scheme == "https" and target.scheme == "http":
        raise refused(url, "it redirects from https to http")
    return target


def is_public(text: str, *, allow_loopback: bool = False) -> bool:
    """Return whether an IP address may be connected to: a global unicast address.

    A NAT64 address (64:ff9b::/96) counts as the IPv4 address inside it, because IPv6-only networks
    reach every IPv4 site that way. All other embeddings are refused.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    is_unicast = not address.is_multicast
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return is_public(str(IPv4Address(int(address) & 0xFFFF_FFFF)))
        is_unicast = address in _IPV6_UNICAST and address.scope_id is None
    if address.is_loopback:
        return allow_loopback
    return is_unicast and address.is_global and not any(address in one for one in _NOT_PUBLIC)


def refused(url: str, reason: str) -> PageError:
    """Return the error that says why a URL or a host is not fetched."""
    return PageError(url, "refused", f"not fetched: {reason}")

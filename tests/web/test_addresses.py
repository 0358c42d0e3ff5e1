"""Which texts are URLs that may be fetched, and which addresses may be connected to."""

from ipaddress import IPv4Address, IPv6Address, ip_network

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import PageError
from crag.web.addresses import is_public, target_of

NOT_PUBLIC = [
    ip_network(block)
    for block in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "100.100.100.200/32", "127.0.0.0/8",
        "168.63.129.16/32", "169.254.0.0/16", "169.254.169.254/32", "172.16.0.0/12",
        "192.0.0.0/24", "192.0.0.192/32", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        "::/128", "::1/128", "::ffff:0:0/96", "::/96", "64:ff9b:1::/48", "fc00::/7",
        "fd00:ec2::254/128", "fd20:ce::254/128", "fe80::/10", "ff00::/8", "2001::/32",
        "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    )
]  # fmt: skip
"""IANA's special-purpose registries, and the metadata services of clouds."""
NAT64, UNICAST = ip_network("64:ff9b::/96"), ip_network("2000::/3")


def is_refused(address: IPv4Address | IPv6Address) -> bool:
    """Return what the registries say."""
    if address in NAT64:
        return is_refused(IPv4Address(int(address) & 0xFFFF_FFFF))
    is_elsewhere = address.version == 6 and address not in UNICAST
    return is_elsewhere or any(address in block for block in NOT_PUBLIC)


def test_the_boundaries_of_every_special_block() -> None:
    blocks = [*NOT_PUBLIC, UNICAST, NAT64]
    edges = [end + step for one in blocks for end in (one[0], one[-1]) for step in (-1, 0, 1)
             if 0 <= int(end) + step < 2**end.max_prefixlen]  # fmt: skip
    inside = [IPv6Address(int(NAT64[0]) + int(one)) for one in edges if one.version == 4]
    for address in edges + inside:
        assert is_public(str(address)) != is_refused(address), address


@given(st.ip_addresses())
def test_nothing_but_global_addresses_passes(address: IPv4Address | IPv6Address) -> None:
    assert is_public(str(address)) != is_refused(address)


@pytest.mark.parametrize("text", ["2606:4700::1%eth0", "fe80::1%eth0", "127.0.0.01", "example.org"])
def test_what_is_no_plain_address_is_not_connected_to(text: str) -> None:
    assert not is_public(text)


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "https://example.org/b"), ("?c", "https://example.org/a?c"),
        ("//other.org/", "https://other.org/"), ("", "https://example.org/a"),
        ("https://bücher.de/ä", "https://xn--bcher-kva.de/%C3%A4"),
    ],
)  # fmt: skip
def test_redirects_are_relative(location: str, url: str) -> None:
    assert target_of(location, httpx.URL("https://example.org/a")) == httpx.URL(url)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://example.org/", "from https to http"),
        ("file:///etc/passwd", "only http and https"), ("/\tb", "cannot be read"),
        ("//me@other.org/", "user name"),
    ],
)  # fmt: skip
def test_refused_redirects(location: str, reason: str) -> None:
    with pytest.raises(PageError, match=reason):
        target_of(location, httpx.URL("https://example.org/a"))
    if reason == "from https to http":
        assert target_of("https://a.org/", httpx.URL("http://a.org/")).scheme == "https"

"""Which texts are URLs that may be fetched, and which addresses may be connected to."""

from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import PageError
from crag.web.addresses import (
    LONGEST_URL,
    Target,
    redirected,
    refusal_of_address,
    refusal_of_host,
    target_of,
)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://Example.ORG", ("http", "example.org", 80, "http://example.org/")),
        (
            "https://example.org:443/a?b=c#d",
            ("https", "example.org", 443, "https://example.org/a?b=c"),
        ),
        ("https://example.org:8443/", ("https", "example.org", 8443, "https://example.org:8443/")),
        ("http://example.org:/", ("http", "example.org", 80, "http://example.org/")),
        ("http://example.org./x", ("http", "example.org", 80, "http://example.org/x")),
        ("  http://example.org/ ", ("http", "example.org", 80, "http://example.org/")),
        ("http://bücher.de/ä", ("http", "xn--bcher-kva.de", 80, "http://xn--bcher-kva.de/ä")),
        ("http://ｅｘａｍｐｌｅ.org/", ("http", "example.org", 80, "http://example.org/")),
        ("http://93.184.216.34/", ("http", "93.184.216.34", 80, "http://93.184.216.34/")),
        ("http://[2606:2800:0::1]:81/", ("http", "2606:2800::1", 81, "http://[2606:2800::1]:81/")),
        ("http://a_b.example.org/", ("http", "a_b.example.org", 80, "http://a_b.example.org/")),
        ("http://example.org/a b", ("http", "example.org", 80, "http://example.org/a b")),
        (
            "http://fa.example.org/می\u200cخ",
            ("http", "fa.example.org", 80, "http://fa.example.org/می\u200cخ"),
        ),
    ],
)
def test_good_urls(url: str, target: tuple[str, str, int, str]) -> None:
    assert target_of(url) == target


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.org/", "only http and https"),
        ("example.org", "only http and https"),
        ("http://me:secret@example.org/", "user name or password"),
        ("http:///path", "no host"),
        ("http://example.org:70000/", "no port 70000"),
        ("http://example.org:0/", "no port 0"),
        ("http://example.org:x/", "host or port cannot be read"),
        ("http://exa%6dple.org/", "host or port cannot be read"),
        ("http://[1:2:3]/", "cannot be read as a URL|no IPv6 address"),
        ("http://[::1", "cannot be read as a URL"),
        ("http://a..b/", "host is not a valid name"),
        ("http://ex*mple.org/", "host is not a valid name"),
        (f"http://{'a' * 64}.org/", "host is not a valid name"),
        ("http://xn--\u2010.org/", "host is not a valid name"),
        ("http://1.2.3/", "unusual notation"),
        ("http://example.0x1/", "unusual notation"),
        ("http://1.2.3.4.5/", "unusual notation"),
        ("http://93.184.216.034/", "unusual notation"),
        ("http://９３.184.216.34/", "unusual notation"),
        ("http://example.org/\n", "control characters"),
        ("http://example.org\\.evil/", "control characters or backslashes"),
        ("http://example.org/" + "a" * LONGEST_URL, f"longer than {LONGEST_URL}"),
    ],
)
def test_refused_urls_say_why(url: str, reason: str) -> None:
    with pytest.raises(PageError, match=reason) as caught:
        target_of(url)
    assert caught.value.problem == "refused"


@given(st.text(max_size=60).map("http://".__add__) | st.text(max_size=60))
def test_any_text_is_a_target_or_refused(url: str) -> None:
    try:
        target = target_of(url)
    except PageError:  # Any other exception fails the test.
        return
    assert target_of(target.url) == target
    assert target.host.isascii()


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/b", "https://example.org/b"),
        ("?c", "https://example.org/a?c"),
        ("//other.org/", "https://other.org/"),
        ("https://other.org/x", "https://other.org/x"),
        ("", "https://example.org/a"),
    ],
)
def test_redirects_are_relative(location: str, url: str) -> None:
    assert redirected(target_of("https://example.org/a"), location).url == url


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://example.org/", "from https to http"),
        ("http://[", "cannot be read"),
        ("file:///etc/passwd", "only http and https"),
        ("/\tb", "control characters"),
    ],
)
def test_refused_redirects(location: str, reason: str) -> None:
    with pytest.raises(PageError, match=reason):
        redirected(target_of("https://example.org/a"), location)


def test_http_may_lead_to_https() -> None:
    assert redirected(target_of("http://a.org/"), "https://a.org/").scheme == "https"


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "1.1.1.1",
        "100.63.255.255",
        "100.128.0.0",
        "172.32.0.1",
        "2001:4860:4860::8888",
    ],
)
def test_public_addresses(address: str) -> None:
    assert refusal_of_address(address) is None


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("169.254.169.254", "metadata"),
        ("100.100.100.200", "metadata"),
        ("168.63.129.16", "metadata"),
        ("fd00:ec2::254", "metadata"),
        ("0.1.2.3", "unspecified"),
        ("100.127.255.255", "carrier"),
        ("192.88.99.1", "6to4"),
        ("::ffff:8.8.8.8", "mapped"),
        ("::8.8.8.8", "compatible"),
        ("2002:808:808::", "6to4"),
        ("2001::1", "Teredo"),
        ("64:ff9b:1::1", "NAT64"),
        ("64:ff9b::10.0.0.1", "private"),
        ("fe80::1%eth0", "one link"),
        ("2606:4700::1%eth0", "one link"),
        ("4000::1", "not public"),
        ("5f00::1", "not public"),
        ("nonsense", "not an IP address"),
        ("0x7f.1", "not an IP address"),
        ("127.0.0.01", "not an IP address"),
    ],
)
def test_refused_addresses_say_what_they_are(address: str, kind: str) -> None:
    assert kind in str(refusal_of_address(address))


def test_nat64_of_a_public_address_is_public() -> None:
    assert refusal_of_address("64:ff9b::1.1.1.1") is None


@given(st.ip_addresses())
def test_nothing_but_global_addresses_passes(address: object) -> None:
    if refusal_of_address(str(address)) is None:
        found = ip_address(str(address))
        assert found.is_global
        assert not found.is_multicast


@given(st.ip_addresses(v=4))
def test_ipv4_inside_ipv6_is_never_freer_than_itself(address: IPv4Address) -> None:
    number = int(address)
    for around in (
        f"::ffff:{address}",
        f"::{address}",
        f"2002:{number >> 16:x}:{number & 65535:x}::",
    ):
        assert refusal_of_address(around, allow_loopback=str(address) != "0.0.0.1")
    if refusal_of_address(str(address)):
        assert refusal_of_address(f"64:ff9b::{address}", allow_loopback=True)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.255.0.1", "::1", "localhost", "a.localhost."]
)
def test_loopback_only_where_allowed(address: str) -> None:
    assert refusal_of_host(address)
    assert refusal_of_host(address, allow_loopback=True) is None


@pytest.mark.parametrize("address", ["10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.1"])
def test_allowing_loopback_allows_no_other_address(address: str) -> None:
    assert refusal_of_host(address, allow_loopback=True)


@pytest.mark.parametrize(
    "name", ["printer.local", "metadata.google.internal", "router", "nas.LAN."]
)
def test_names_of_the_local_network(name: str) -> None:
    assert "local network" in str(refusal_of_host(name))


def test_a_public_name_is_left_to_its_addresses() -> None:
    assert refusal_of_host("localhost.example.org") is None


def test_the_origin_names_the_port() -> None:
    assert Target("http", "a.org", 80, "http://a.org/").origin == "http://a.org:80"

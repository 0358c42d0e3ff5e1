"""Hostile URLs, names, addresses and redirects: none connects, which is seen at the socket."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_network

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.errors import PageError
from crag.parts import Page
from crag.web.addresses import is_public, target_of
from crag.web.reader import HttpPageReader
from tests.web.hostile import (
    HOSTILE,
    LIMITS,
    ONLY_AS_HITS,
    PUBLIC,
    PUBLIC_6,
    Names,
    Recorder,
    redirect,
    transcribed,
)
from tests.web.site import Website, website

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
        assert is_public(str(address)) is (not is_refused(address)), address


@given(st.ip_addresses())
def test_nothing_but_global_addresses_passes(address: IPv4Address | IPv6Address) -> None:
    assert is_public(str(address)) is (not is_refused(address))


@pytest.mark.parametrize("text", ["2606:4700::1%eth0", "fe80::1%eth0", "127.0.0.01", "example.org"])
def test_what_is_no_plain_address_is_not_connected_to(text: str) -> None:
    assert is_public(text) is False


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
    assert target_of(f" {url}X ") == httpx.URL(f"{url}X")


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://example.org/", "it redirects from https to http"),
        ("file:///etc/passwd", "only http and https are fetched"),
        ("/\tb", "it cannot be read as a URL"),
        ("//me@other.org/", "it holds a user name or password"),
        ("//other.org:0/", "it has no host, or no port"),
    ],
)
def test_refused_redirects(location: str, reason: str) -> None:
    with pytest.raises(PageError, match=f": not fetched: {reason}$"):
        target_of(location, httpx.URL("https://example.org/a"))
    assert target_of("https://a.org/", httpx.URL("http://a.org/")).scheme == "https"


@pytest.fixture(scope="module")
def running() -> Iterator[Website]:
    with website() as site:
        yield site


@pytest.fixture
def site(running: Website) -> Website:
    running.requests.clear()
    return running


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture(autouse=True)
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies are told as they are: reading them is tested in test_transcribe.py."""
    monkeypatch.setattr("crag.web.reader.transcribe", transcribed)


@pytest.fixture
def reader(recorder: Recorder, names: Names) -> HttpPageReader:
    return HttpPageReader(resolver=names, connector=recorder)


def at(site: Website, template: str) -> str:
    return template.replace("{port}", str(site.server_port))


def public(site: Website, path: str = "/text", host: str = "public.example") -> str:
    return f"http://{host}:{site.server_port}{path}"


def one(reader: HttpPageReader, url: str) -> Page:
    [page] = reader.read([url], LIMITS)
    return page


def test_hostile_urls(site: Website, reader: HttpPageReader, recorder: Recorder) -> None:
    for template in (*HOSTILE, *ONLY_AS_HITS):
        page = one(reader, at(site, template))
        assert page.problem in {"refused", "network"}, template
        assert (recorder.addresses, site.requests) == ([], []), template


def test_redirects_to_hostile_urls(
    site: Website, reader: HttpPageReader, recorder: Recorder
) -> None:
    ways = [redirect(at(site, template)) for template in HOSTILE]
    for way in ways:
        assert one(reader, public(site, way)).problem in {"refused", "network"}, way
    assert recorder.addresses == [PUBLIC] * len(HOSTILE)
    assert site.paths() == ways


def test_a_chain_that_ends_inside(
    site: Website, reader: HttpPageReader, recorder: Recorder
) -> None:
    way = redirect(public(site, redirect(public(site, redirect(site.at("/text"))))))
    page = one(reader, public(site, way))
    assert page.problem == "refused"
    assert set(recorder.addresses) == {PUBLIC}
    assert len(site.requests) == 3


def test_a_name_that_turns_during_a_redirect(
    site: Website, reader: HttpPageReader, recorder: Recorder, names: Names
) -> None:
    page = one(reader, public(site, redirect("/text"), host="turning.example"))
    assert page.problem == "refused"
    assert names.asked == ["turning.example"] * 2
    assert recorder.addresses == [PUBLIC]


def test_the_next_address_where_one_does_not_answer(site: Website) -> None:
    def both(*_: object, **__: object) -> list[str]:
        return [PUBLIC_6, PUBLIC]

    recorder = Recorder()
    recorder.unreachable.add(PUBLIC_6)
    reader = HttpPageReader(resolver=both, connector=recorder)
    assert (one(reader, public(site))).problem is None
    assert recorder.addresses == [PUBLIC_6, PUBLIC]


def test_a_name_that_nobody_knows(
    site: Website, reader: HttpPageReader, recorder: Recorder
) -> None:
    page = one(reader, public(site, host="unknown.example"))
    assert page.problem == "network"
    assert "unknown.example cannot be resolved" in page.detail
    assert recorder.addresses == []


def test_loopback_where_it_is_allowed(site: Website) -> None:
    recorder = Recorder()
    reader = HttpPageReader(allow_loopback=True, connector=recorder)
    urls = [site.at("/text"), at(site, "http://localhost:{port}/text")]
    pages = reader.read(urls, LIMITS)
    assert [page.problem for page in pages] == [None, None]
    assert set(recorder.addresses) <= {"127.0.0.1", "::1"}


def test_allowing_loopback_allows_nothing_else(site: Website, names: Names) -> None:
    recorder = Recorder()
    reader = HttpPageReader(allow_loopback=True, resolver=names, connector=recorder)
    reader.read([at(site, template) for template in HOSTILE], LIMITS)
    assert set(recorder.addresses) <= {PUBLIC, "127.0.0.1", "127.1.2.3", "::1"}

"""One spelling for each page, and hosts that only look like Wikipedia."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.text.urls import canonical, is_wikipedia

PAGE = "https://example.org/a/b?x=1&y=2"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (" HTTPS://Example.ORG/a/b?x=1&y=2\n", PAGE),
        ("https://example.org:443/a/b?x=1&y=2", PAGE),
        ("https://example.org./a/b/?x=1&y=2", PAGE),
        ("https://example.org/a/b?y=2&x=1#part", PAGE),
        ("https://example.org/a/./c/../b?x=1&&y=2&", PAGE),
        ("https://example.org/%61/b?x=%31&y=2", PAGE),
        ("http://example.org", "http://EXAMPLE.org:80/"),
        ("https://en.m.wikipedia.org/wiki/Ada", "https://en.wikipedia.org/wiki/Ada#Life"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%c3%a4"),
        ("https://example.org/a b", "https://example.org/a%20b"),
        ("https://example.org/?q=a+b", "https://example.org/?q=a%20b"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
    ],
)
def test_spellings_of_one_page(one: str, other: str) -> None:
    assert canonical(one) == canonical(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.org/A", "https://example.org/a"),
        ("https://example.org/?a=1", "https://example.org/?a=2"),
        ("https://example.org:8443/", "https://example.org/"),
        ("https://example.org/?q=1%262", "https://example.org/?q=1&2"),
    ],
)
def test_different_pages_stay_different(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


ADDRESSES = st.builds(
    "{}://{}{}/{}?{}#{}".format,
    st.sampled_from(["http", "HTTPS", "ftp"]),
    st.one_of(st.sampled_from(["example.org", "EN.m.Wikipedia.org", "[::1]", "a。b。"]), st.text()),
    st.sampled_from(["", ":80", ":443", ":x", "."]),
    st.one_of(st.text(max_size=12), st.text("%2e./ 4Fé", max_size=12)),
    st.one_of(st.text(max_size=12), st.text("ab_=&%+5F1", max_size=16)),
    st.text(max_size=12),
)


@given(st.one_of(st.text(), ADDRESSES))
def test_canonical_is_total_and_idempotent(url: str) -> None:
    once = canonical(url)
    assert canonical(once) == once
    assert is_wikipedia(once) == is_wikipedia(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://en.wikipedia.org/wiki/Ada", True),
        ("http://WIKIPEDIA.org.", True),
        ("https://en.m.wikipedia.org:443/", True),
        ("https://wikipedia.org.evil.example/wiki/Ada", False),
        ("https://notwikipedia.org/", False),
        ("https://evil.example/?wikipedia.org", False),
        ("https://en.wikipedia.org@evil.example/", False),
        ("https://evil.example\\.wikipedia.org/", False),
        ("https://evil.example%2f.wikipedia.org/", False),
        ("https://evil.example#.wikipedia.org", False),
        ("ftp://en.wikipedia.org/", False),
        ("en.wikipedia.org", False),
        ("https://[wikipedia.org", False),
        ("https://wikipediа.org/", False),  # The last letter of the name is Cyrillic.
    ],
)
def test_only_hosts_of_wikipedia_are_wikipedia(url: str, expected: bool) -> None:
    assert is_wikipedia(url) is expected

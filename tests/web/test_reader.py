"""Reading pages over real connections: each page a result, never an exception."""

import gzip
import logging
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.errors import PageError
from crag.parts import Page, ReadingLimits
from crag.web.addresses import is_public
from crag.web.reader import USER_AGENT, HttpPageReader
from tests.web.hostile import LIMITS, PUBLIC, Names, Recorder, redirect, transcribed
from tests.web.site import BOMB_BYTES, HTML, PARAGRAPHS, Answer, Website, listening, website

TEXT = b"The tide mill ground barley. " * 200
GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwords"


@pytest.fixture
def site() -> Iterator[Website]:
    with website() as running:
        yield running


@pytest.fixture(autouse=True)
def as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bodies are told as they are: reading them is tested in test_transcribe.py."""
    monkeypatch.setattr("crag.web.reader.transcribe", transcribed)


def reader_with(**options: Any) -> HttpPageReader:
    return HttpPageReader(**{"allow_loopback": True} | options)


def read(site: Website, *paths: str, limits: ReadingLimits = LIMITS, **options: Any) -> list[Page]:
    return reader_with(**options).read([site.at(path) for path in paths], limits)


def one(url: str, **limits: Any) -> Page:
    (page,) = reader_with().read([url], LIMITS._replace(**limits))
    return page


def problems(pages: list[Page]) -> list[str | None]:
    return [page.problem for page in pages]


def test_pages_in_the_order_of_their_urls(site: Website) -> None:
    site.latency["/text"] = 0.1
    text, article = read(site, "/text", "/article")
    assert text == Page(
        site.at("/text"),
        f"text/plain; charset=utf-8 {site.at('/text')}",
        ("\n\n".join(PARAGRAPHS),),
    )
    assert article.title == f"{HTML} {site.at('/article')}"
    assert reader_with().read([], LIMITS) == []


def test_each_failure_is_the_page_s_own(site: Website) -> None:
    site.latency["/slow"] = 5
    expected = {
        "/text": None, "/404": "status", "/500": "status", "/image": "content_type",
        "/loop": "refused", "/to-private": "refused", "/bomb": "too_large",
        "/endless": "too_large", "/drip": "timeout", "/slow": "timeout", "/429": "status",
        "/gzip": None,
    }  # fmt: skip
    read(site, "/bomb")  # It is made now.
    began = monotonic()
    limits = LIMITS._replace(page_seconds=1.5, page_bytes=100_000)
    pages = read(site, *expected, limits=limits)
    assert monotonic() - began < 5
    assert dict(zip(expected, problems(pages), strict=True)) == expected
    assert all(page.detail for page in pages if page.problem)
    assert [page.url for page in pages] == [site.at(path) for path in expected]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(st.characters(), max_size=30)
        | st.text("/:@[]%.#?\\a1０。\ud800", max_size=30).map("http://".__add__),
        max_size=8,
    )
)
def test_whatever_is_asked_for_gets_a_page(urls: list[str]) -> None:
    recorder = Recorder()
    reader = HttpPageReader(resolver=Names(), connector=recorder)
    pages = reader.read(urls, LIMITS)
    assert [page.url for page in pages] == urls
    assert set(problems(pages)) <= {"refused", "network"}
    assert all(map(is_public, recorder.addresses))


def test_what_a_site_learns(site: Website, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    site.answers["/cookie"] = Answer(
        status=302, headers={"Location": "/text", "Set-Cookie": "id=1; Path=/"}
    )
    names = reader_with(allow_loopback=False, resolver=Names(), connector=Recorder())
    url = f"http://public.example:{site.server_port}/cookie#secret"
    assert problems(names.read([url], LIMITS)) == [None]
    first, second = (request.headers for request in site.requests)
    assert site.paths() == ["/cookie", "/text"]
    assert first == second
    assert set(first) == {"host", "user-agent", "accept", "accept-encoding"}
    assert first["host"] == f"public.example:{site.server_port}"
    assert first["user-agent"] == USER_AGENT


def test_tls_names_the_host_and_not_the_address() -> None:
    reader = HttpPageReader(resolver=Names(), connector=Recorder())
    with listening([b"no TLS"]) as (port, received):
        (page,) = reader.read([f"https://public.example:{port}/"], LIMITS)
    assert page.problem == "network"
    assert received[0][0] == 0x16  # A TLS handshake.
    assert b"public.example" in received[0]
    assert PUBLIC.encode() not in received[0]


def test_five_redirects_and_no_more(site: Website) -> None:
    for number in range(6):
        following = f"/hop{number - 1}" if number else "/text"
        site.answers[f"/hop{number}"] = Answer(status=302, headers={"Location": following})
    assert problems(read(site, "/hop4")) == [None]
    site.requests.clear()
    assert one(site.at("/hop5")).detail == "more than 5 redirects"
    assert len(site.requests) == 6


@pytest.mark.parametrize(
    ("encoding", "body", "problem"),
    [
        ("identity", TEXT, None),
        ("gzip", gzip.compress(TEXT), None),
        ("X-GZIP", gzip.compress(TEXT) + b"what follows is no part of it", None),
        ("gzip", b"\xffno gzip at all", "unreadable"),
        ("gzip", gzip.compress(TEXT)[:20] + b"\xff" * 50, "unreadable"),
        ("gzip", gzip.compress(TEXT)[:-8] + b"\0" * 8, "unreadable"),
        *((other, TEXT, "unreadable") for other in ("br", "deflate", "gzip, gzip", "nonsense")),
    ],
    ids=range(10),
)
def test_encodings(site: Website, encoding: str, body: bytes, problem: str | None) -> None:
    def parts() -> Iterator[bytes]:
        yield from (body[at : at + 100] for at in range(0, len(body), 100))

    site.answers["/whole"] = Answer(body, "text/plain", headers={"Content-Encoding": encoding})
    site.answers["/parts"] = Answer(parts(), "text/plain", headers={"Content-Encoding": encoding})
    for page in read(site, "/whole", "/parts"):
        assert page.problem == problem
        assert page.paragraphs == (() if problem else (TEXT.decode(),))


def test_a_bomb_is_never_inflated_beyond_the_limit(site: Website) -> None:
    assert problems(read(site, "/bomb")) == ["too_large"]  # All is loaded, and the bomb made.
    tracemalloc.start()
    assert problems(read(site, "/bomb", limits=LIMITS._replace(page_bytes=10_000))) == ["too_large"]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < BOMB_BYTES / 30


def test_compressed_bytes_without_content_end_too(site: Website) -> None:
    packer = zlib.compressobj(wbits=31)
    head = packer.compress(b"") + packer.flush(zlib.Z_SYNC_FLUSH)
    body = head + b"\0\0\0\xff\xff" * 3000
    site.answers["/"] = Answer(iter([body]), headers={"Content-Encoding": "gzip"})
    assert one(site.at("/"), page_bytes=5000).problem == "too_large"


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Header: very long\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000,
        b"HTTP/1.1 302 Found\r\nLocation: /\x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot hexadecimal\r\n",
    ],
)
def test_what_is_not_http(answer: bytes) -> None:
    with listening([answer, answer]) as (port, _):
        assert one(f"http://127.0.0.1:{port}/").problem == "network"
    assert one("http://127.0.0.1:9/").problem == "network"


def test_time_for_all_pages_together(site: Website) -> None:
    site.latency["/slow"] = 5
    began = monotonic()
    pages = read(site, "/text", "/slow", "/drip", limits=LIMITS._replace(seconds=1.5))
    assert problems(pages) == [None, "timeout", "timeout"]
    assert monotonic() - began < 4
    site.requests.clear()
    assert problems(read(site, "/text", limits=LIMITS._replace(seconds=0))) == ["timeout"]
    assert site.requests == []


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (PageError("", "empty", "said so"), ("empty", "said so")),
        (RecursionError("too deep"), ("unreadable", "reading it failed: RecursionError")),
    ],
)
def test_a_transcription_that_fails(
    site: Website,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    raised: Exception,
    expected: tuple[str, str],
) -> None:
    def failing(*_: object) -> Any:
        raise raised

    caplog.set_level(logging.WARNING)
    monkeypatch.setattr("crag.web.reader.transcribe", failing)
    (page,) = read(site, "/text")
    assert (page.problem, page.detail) == expected
    assert str(raised) in caplog.text


def test_a_page_without_end_holds_nobody_up(site: Website, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()

    def endless(*_: object) -> Any:
        end.wait(10)
        return "", ()

    began = monotonic()
    monkeypatch.setattr("crag.web.reader.transcribe", endless)
    for stuck in ({}, {"resolver": endless}):
        (page,) = read(site, "/text", limits=LIMITS._replace(page_seconds=0.2), **stuck)
        assert (page.problem, page.detail) == ("timeout", "not read in 0.2 s")
    assert monotonic() - began < 3
    end.set()


POLITE = LIMITS._replace(robots=True)
RULES = (
    "User-agent: *\nDisallow: /article\nAllow: /article/open\n\nUser-agent: other\nDisallow: /\n"
)


@pytest.fixture
def polite_site(site: Website) -> Website:
    site.robots = RULES
    return site


def asked(site: Website, *paths: str, **limits: Any) -> list[str | None]:
    return problems(read(site, *paths, limits=POLITE._replace(**limits), robots_seconds=20))


def test_robots_txt_is_asked_once_and_obeyed(polite_site: Website) -> None:
    site, reader = polite_site, reader_with(robots_seconds=20)
    site.latency["/robots.txt"] = 0.05
    urls = [site.at(path) for path in ("/text", "/article", "/text?2", redirect("/article"))]
    for _ in range(2):
        pages = reader.read(urls, POLITE)
        assert problems(pages) == [None, "robots", None, "robots"]
        assert pages[1].detail == "the site's robots.txt forbids it"
    assert site.paths().count("/robots.txt") == 1
    assert "/article" not in site.paths()
    assert problems(reader.read([site.at("/article")], LIMITS)) == [None]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 500])
def test_rules_that_cannot_be_had_forbid_nothing(polite_site: Website, status: int) -> None:
    polite_site.statuses["/robots.txt"] = [status]
    assert asked(polite_site, "/article") == [None]
    assert polite_site.paths() == ["/robots.txt", "/article"]


def test_slow_rules(polite_site: Website) -> None:
    polite_site.latency["/robots.txt"] = 5
    began = monotonic()
    reader = reader_with(robots_seconds=0.3)
    url = polite_site.at("/article")
    assert problems(reader.read([url], POLITE._replace(page_seconds=0.1))) == ["timeout"]
    assert problems(reader.read([url], POLITE)) == [None]  # They were not taken for none before.
    assert polite_site.paths().count("/robots.txt") == 2
    assert monotonic() - began < 4

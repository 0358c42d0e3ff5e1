"""Reading several pages over real connections: each page a result, never an exception."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crag.errors import PageError
from crag.parts import Page, PageReader, ReadingLimits
from crag.web.reader import HttpPageReader
from tests.web.hostile import LIMITS, Names, Recorder, Text, redirect, transcribed
from tests.web.site import PARAGRAPHS, Answer, Website, website

KEPT = LIMITS._replace(cache_hours=1)


@pytest.fixture
def site() -> Iterator[Website]:
    with website() as running:
        yield running


def reader_with(**options: Any) -> HttpPageReader:
    given: dict[str, Any] = {"transcribe": transcribed, "longest_wait": 0.01}
    return HttpPageReader(allow_loopback=True, **given | options)


async def read(
    site: Website, *paths: str, limits: ReadingLimits = LIMITS, **options: Any
) -> list[Page]:
    return await reader_with(**options).aread([site.at(path) for path in paths], limits)


def problems(pages: list[Page]) -> list[str | None]:
    return [page.problem for page in pages]


async def test_pages_in_the_order_of_their_urls(site: Website) -> None:
    site.latency["/text"] = 0.1
    text, article = await read(site, "/text", "/article")
    assert text.url == site.at("/text")
    assert text.paragraphs == ("\n\n".join(PARAGRAPHS),)
    assert text.fetched_bytes == len("\n\n".join(PARAGRAPHS))
    assert not text.cached
    assert article.title == f"text/html; charset=utf-8 {site.at('/article')}"


async def test_each_failure_is_the_page_s_own(site: Website) -> None:
    site.latency["/slow"] = 5
    expected = {
        "/text": None,
        "/404": "status",
        "/500": "status",
        "/image": "content_type",
        "/loop": "refused",
        "/to-private": "refused",
        "/bomb": "too_large",
        "/endless": "too_large",
        "/drip": "timeout",
        "/slow": "timeout",
        "/429": "status",
        "/gzip": None,
    }
    limits = LIMITS._replace(page_seconds=1, page_bytes=100_000)
    pages = await read(site, *expected, limits=limits._replace(per_site=20))
    assert dict(zip(expected, problems(pages), strict=True)) == expected
    assert all(page.detail for page in pages if page.problem)
    assert all(page.url == site.at(path) for page, path in zip(pages, expected, strict=True))


async def test_hostile_and_good_urls_together(site: Website) -> None:
    recorder = Recorder()
    urls = [
        "file:///etc/passwd",
        site.at("/text"),
        "http://[::ffff:7f00:1]/",
        "",
        "http://10.0.0.1",
    ]
    pages = await reader_with(connector=recorder).aread(urls, LIMITS)
    assert problems(pages) == ["refused", None, "refused", "refused", "refused"]
    assert [page.url for page in pages] == urls
    assert recorder.addresses == ["127.0.0.1"]


async def test_transcribed_by_our_own(site: Website) -> None:
    reader = HttpPageReader(allow_loopback=True)
    text, empty = await reader.aread([site.at("/text"), site.at("/empty")], LIMITS)
    assert text.paragraphs == PARAGRAPHS
    assert empty.problem == "empty"


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
    reader = HttpPageReader(resolver=Names(), connector=recorder, transcribe=transcribed)
    pages = reader.read(urls, LIMITS)
    assert [page.url for page in pages] == urls
    assert set(problems(pages)) <= {"refused", "network"}
    assert recorder.addresses == []


async def test_no_urls() -> None:
    assert await reader_with().aread([], LIMITS) == []


def test_without_a_loop(site: Website) -> None:
    reader = reader_with()
    assert isinstance(reader, PageReader)
    for _ in range(2):
        assert problems(reader.read([site.at("/text"), site.at("/404")], LIMITS)) == [
            None,
            "status",
        ]


async def test_under_a_running_loop(site: Website) -> None:
    assert problems(reader_with().read([site.at("/text")], LIMITS)) == [None]


async def test_pages_are_fetched_at_the_same_time(site: Website) -> None:
    together = threading.Barrier(4, timeout=3)
    site.answers |= {f"/{number}": Answer(waiting(together), "text/plain") for number in range(4)}
    pages = await read(
        site, *(f"/{number}" for number in range(4)), limits=LIMITS._replace(per_site=4)
    )
    assert problems(pages) == [None] * 4


def waiting(barrier: threading.Barrier) -> Iterator[bytes]:
    barrier.wait()
    yield b"All of us were asked at once."


async def test_two_at_once_of_one_site(site: Website) -> None:
    lock, inside, most = threading.Lock(), 0, 0

    def counted() -> Iterator[bytes]:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        site.stopping.wait(0.03)
        with lock:
            inside -= 1
        yield b"words of a page"

    site.answers |= {f"/{number}": Answer(counted(), "text/plain") for number in range(6)}
    paths = [f"/{number}" for number in range(6)]
    pages = await read(site, *paths, limits=LIMITS._replace(per_site=2))
    assert problems(pages) == [None] * 6
    assert most == 2


async def test_spellings_of_one_url_are_fetched_once(site: Website) -> None:
    urls = [site.at("/text"), site.at("/text#part"), site.at("/text").replace("http", "HTTP")]
    pages = await reader_with().aread(urls, LIMITS)
    assert site.paths() == ["/text"]
    assert [page.url for page in pages] == urls
    assert len({page.paragraphs for page in pages}) == 1
    assert [page.fetched_bytes > 0 for page in pages] == [True, False, False]


async def test_time_for_all_pages_together(site: Website) -> None:
    site.latency["/slow"] = 5
    begun = monotonic()
    limits = LIMITS._replace(seconds=1.5)
    pages = await read(site, "/text", "/slow", "/drip", limits=limits._replace(per_site=3))
    assert problems(pages) == [None, "timeout", "timeout"]
    assert pages[1].detail == "not read in the 1.5 s for all pages together"
    assert pages[2].fetched_bytes > 0
    assert monotonic() - begun < 4


async def test_no_time_at_all(site: Website) -> None:
    assert problems(await read(site, "/text", limits=LIMITS._replace(seconds=0))) == ["timeout"]
    assert site.requests == []


async def test_bytes_for_all_pages_together(site: Website) -> None:
    site.answers |= {f"/{number}": Answer(b"x" * 1000, "text/plain") for number in range(5)}
    paths = [f"/{number}" for number in range(5)]
    pages = await read(site, *paths, limits=LIMITS._replace(bytes=3500, per_site=1))
    assert problems(pages) == [None, None, None, "budget", "budget"]
    assert sum(page.fetched_bytes for page in pages) <= 3500
    assert "all pages together" in pages[3].detail


async def test_no_bytes_at_all(site: Website) -> None:
    assert problems(await read(site, "/text", limits=LIMITS._replace(bytes=0))) == ["budget"]
    assert site.requests == []


@pytest.mark.parametrize("problem", ["unreadable", "content_type", "empty"])
async def test_what_transcription_refuses(site: Website, problem: Any) -> None:
    def refuse(_: bytes, __: str, url: str) -> Text:
        raise PageError(url, problem, "said so")

    [page] = await read(site, "/text", transcribe=refuse)
    assert (page.problem, page.detail) == (problem, "said so")


async def test_a_transcription_that_breaks(site: Website, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    def broken(*_: object) -> Text:
        raise RecursionError("too deep")

    [page] = await read(site, "/text", transcribe=broken)
    assert (page.problem, page.detail) == ("unreadable", "reading it failed: RecursionError")
    assert "too deep" in caplog.text


async def test_a_transcription_without_text(site: Website) -> None:
    [page] = await read(site, "/text", transcribe=lambda *_: Text("A title", ()))
    assert (page.problem, page.detail) == ("empty", "it holds no text")


async def test_a_resolver_that_breaks() -> None:
    async def broken(host: str, port: int) -> list[str]:
        raise KeyError(host, port)

    [page] = await reader_with(resolver=broken).aread(["http://a.example/"], LIMITS)
    assert (page.problem, page.detail) == ("unreadable", "reading it failed: KeyError")


def test_a_transcription_without_end_holds_nobody_up(site: Website) -> None:
    end = threading.Event()

    def endless(*_: object) -> Text:
        end.wait(10)
        return Text("", ())

    begun = monotonic()
    limits = LIMITS._replace(page_seconds=0.2)
    [page] = reader_with(transcribe=endless).read([site.at("/text")], limits)
    end.set()
    assert (page.problem, page.detail) == ("timeout", "its text was not extracted in time")
    assert monotonic() - begun < 3


async def test_cancelling_ends_everything(site: Website) -> None:
    begun = asyncio.Event()

    async def resolver(*_: object, **__: object) -> list[str]:
        begun.set()
        return ["127.0.0.1"]

    urls = [f"http://{name}.example:{site.server_port}/drip" for name in ("a", "b")]
    task = asyncio.create_task(reader_with(resolver=resolver).aread(urls, LIMITS))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_kept_page_is_not_fetched(site: Website, tmp_path: Path) -> None:
    cache = tmp_path / "pages"
    [first] = await read(site, "/text", limits=KEPT, cache=cache)
    [second] = await read(site, "/text#there", limits=KEPT, cache=cache)
    assert site.paths() == ["/text"]
    assert (first.cached, second.cached) == (False, True)
    assert (second.title, second.paragraphs) == (first.title, first.paragraphs)
    assert second.fetched_bytes == 0
    assert second.url == site.at("/text#there")


async def test_failures_are_not_kept(site: Website, tmp_path: Path) -> None:
    site.statuses["/text"] = [404]
    for expected in ("status", None):
        pages = await read(site, "/text", limits=KEPT, cache=tmp_path / "pages")
        assert problems(pages) == [expected]


async def test_private_use_keeps_nothing(site: Website, tmp_path: Path) -> None:
    for _ in range(2):
        await read(site, "/text", limits=LIMITS, cache=tmp_path / "pages")
    assert site.paths() == ["/text"] * 2
    assert not (tmp_path / "pages").exists()


async def test_a_kept_loopback_page_is_not_served_to_who_may_not_fetch_it(
    site: Website, tmp_path: Path
) -> None:
    cache = tmp_path / "pages"
    assert problems(await read(site, "/text", limits=KEPT, cache=cache)) == [None]
    strict = HttpPageReader(cache=cache, transcribe=transcribed)
    assert problems(await strict.aread([site.at("/text")], KEPT)) == ["refused"]


async def test_a_damaged_cache_costs_a_fetch_and_no_page(site: Website, tmp_path: Path) -> None:
    cache = tmp_path / "pages"
    cache.write_bytes(b"no database " * 1000)
    pages = await read(site, "/text", limits=KEPT, cache=cache)
    assert problems(pages) == [None]


async def test_one_reader_for_many_threads(site: Website, tmp_path: Path) -> None:
    reader = reader_with(cache=tmp_path / "pages")
    urls = [site.at("/text"), site.at("/article"), site.at("/404")]
    calls = [asyncio.to_thread(reader.read, urls, KEPT) for _ in range(5)]
    for pages in await asyncio.gather(*calls):
        assert problems(pages) == [None, None, "status"]


async def test_a_redirect_that_robots_and_guard_let_pass(site: Website) -> None:
    [page] = await read(site, redirect("/text"), limits=LIMITS._replace(robots=True))
    assert page.title == f"text/plain; charset=utf-8 {site.at('/text')}"
    assert page.url == site.at(redirect("/text"))

"""robots.txt and politeness, asked for by the reader and answered by the test's site."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from crag.errors import PageError
from crag.parts import Page
from crag.web.addresses import target_of
from crag.web.cache import PageCache
from crag.web.reader import HttpPageReader
from crag.web.robots import MOST_SITES, Robots, SitePolicy
from tests.web.hostile import LIMITS, redirect, transcribed
from tests.web.site import Answer, Website, website

POLITE = LIMITS._replace(robots=True)
RULES = (
    "User-agent: *\nDisallow: /article\nAllow: /article/open\n\nUser-agent: other\nDisallow: /\n"
)
TARGET = target_of("http://example.org/private/page?x=1")


@pytest.fixture
def site() -> Iterator[Website]:
    with website() as running:
        running.robots = RULES
        yield running


@pytest.fixture
def reader() -> HttpPageReader:
    return HttpPageReader(allow_loopback=True, transcribe=transcribed, robots_seconds=20)


async def one(reader: HttpPageReader, url: str, **limits: object) -> Page:
    [page] = await reader.aread([url], POLITE._replace(**limits))  # type: ignore[arg-type]
    return page


async def test_what_is_forbidden_is_not_fetched(site: Website, reader: HttpPageReader) -> None:
    page = await one(reader, site.at("/article"))
    assert (page.problem, page.detail) == ("robots", "the site's robots.txt forbids it")
    assert site.paths() == ["/robots.txt"]


async def test_what_is_allowed_is_fetched(site: Website, reader: HttpPageReader) -> None:
    assert (await one(reader, site.at("/text"))).problem is None
    assert site.paths() == ["/robots.txt", "/text"]


async def test_rules_for_us_by_name(site: Website, reader: HttpPageReader) -> None:
    site.robots = "User-agent: crag\nDisallow: /\n\nUser-agent: *\nAllow: /\n"
    assert (await one(reader, site.at("/text"))).problem == "robots"


async def test_switched_off_nobody_asks(site: Website, reader: HttpPageReader) -> None:
    assert (await one(reader, site.at("/article"), robots=False)).problem is None
    assert site.paths() == ["/article"]


async def test_a_redirect_into_the_forbidden(site: Website, reader: HttpPageReader) -> None:
    assert (await one(reader, site.at(redirect("/article")))).problem == "robots"
    assert "/article" not in site.paths()


async def test_a_site_is_asked_once(site: Website, reader: HttpPageReader) -> None:
    site.latency["/robots.txt"] = 0.05
    urls = [site.at(f"/text?{number}") for number in range(4)]
    assert {page.problem for page in await reader.aread(urls, POLITE)} == {None}
    await reader.aread(urls, POLITE)
    assert site.paths().count("/robots.txt") == 1


async def test_the_cache_remembers_for_another_reader(site: Website, tmp_path: Path) -> None:
    for _ in range(2):
        reader = HttpPageReader(
            allow_loopback=True, transcribe=transcribed, cache=tmp_path / "pages", robots_seconds=20
        )
        assert (await one(reader, site.at("/article"), cache_hours=1)).problem == "robots"
    assert site.paths() == ["/robots.txt"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 429, 500, 503])
async def test_rules_that_cannot_be_had_forbid_nothing(
    site: Website, reader: HttpPageReader, status: int
) -> None:
    site.statuses["/robots.txt"] = [status] * 3
    assert (await one(reader, site.at("/article"))).problem is None
    assert site.paths() == ["/robots.txt", "/article"]


@pytest.mark.parametrize("body", [b"\xff\xfe\x00", b"<html>none</html>", b"x" * 600_000])
async def test_rules_that_are_none_forbid_nothing(
    site: Website, reader: HttpPageReader, body: bytes
) -> None:
    site.answers["/robots.txt"] = Answer(body, "text/html")
    assert (await one(reader, site.at("/article"))).problem is None


async def test_a_byte_order_mark_hides_no_rule(site: Website, reader: HttpPageReader) -> None:
    site.answers["/robots.txt"] = Answer(b"\xef\xbb\xbf" + RULES.encode(), "text/plain")
    assert (await one(reader, site.at("/article"))).problem == "robots"


async def test_rules_behind_a_private_redirect_are_not_fetched(
    site: Website, reader: HttpPageReader
) -> None:
    site.answers["/robots.txt"] = Answer(status=302, headers={"Location": "http://10.0.0.1/"})
    assert (await one(reader, site.at("/article"))).problem is None


async def test_slow_rules_hold_a_page_up_no_longer_than_the_page_has(
    site: Website, reader: HttpPageReader
) -> None:
    site.latency["/robots.txt"] = 5
    begun = monotonic()
    assert (await one(reader, site.at("/text"), page_seconds=0.2)).problem == "timeout"
    assert monotonic() - begun < 4


async def allows(robots: Robots, text: str | None, hours: float = 1) -> tuple[bool, list[str]]:
    asked: list[str] = []

    async def fetch(url: str) -> str | None:
        asked.append(url)
        return text

    return await robots.allows(TARGET, hours, fetch), asked


async def test_where_rules_are_asked_for() -> None:
    assert await allows(Robots(), "User-agent: *\nDisallow: /private") == (
        False,
        ["http://example.org:80/robots.txt"],
    )


@pytest.mark.parametrize("kept", ["", "User-agent: *\nDisallow: /"])
async def test_the_cache_keeps_rules_and_their_absence(tmp_path: Path, kept: str) -> None:
    cache = PageCache(tmp_path / "pages")
    first = await allows(Robots(cache), kept)
    assert await allows(Robots(cache), "never asked") == (first[0], [])


async def test_the_cache_keeps_no_failure_and_respects_its_hours(tmp_path: Path) -> None:
    cache = PageCache(tmp_path / "pages")
    await allows(Robots(cache), None)
    assert (await allows(Robots(cache), ""))[1]
    cache.put(f"robots {TARGET.origin}", {"text": ["damaged"]}, 1)
    assert (await allows(Robots(cache), ""))[1]
    assert (await allows(Robots(cache), "", hours=0))[1]


async def test_rules_that_take_too_long_forbid_nothing() -> None:
    async def slow(_: str) -> str:
        await asyncio.sleep(20)
        return "User-agent: *\nDisallow: /"

    assert await Robots(seconds=0.02).allows(TARGET, 1, slow)


async def test_memory_is_bounded() -> None:
    async def none(_: str) -> str:
        return ""

    robots = Robots()
    for number in range(MOST_SITES + 5):
        await robots.allows(target_of(f"http://s{number}.org/"), 0, none)
    assert len(robots) <= MOST_SITES


async def most_at_once(at_once: int, urls: list[str]) -> int:
    manners = SitePolicy(None, never, hours=0, at_once=at_once)
    inside = most = 0

    async def enter(url: str) -> None:
        nonlocal inside, most
        async with manners.enter(target_of(url)):
            inside += 1
            most = max(most, inside)
            for _ in range(3):
                await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*map(enter, urls))
    return most


async def never(url: str) -> str | None:
    raise AssertionError(url)


async def test_few_at_once_of_one_site_and_all_of_different_ones() -> None:
    assert await most_at_once(2, [f"http://a.org/{number}" for number in range(6)]) == 2
    assert await most_at_once(2, [f"http://a{number}.org/" for number in range(6)]) == 6


async def test_a_failure_frees_its_place() -> None:
    manners = SitePolicy(None, never, hours=0, at_once=1)
    for _ in range(3):
        with pytest.raises(PageError):
            async with manners.enter(TARGET):
                raise PageError(TARGET.url, "network", "broke")

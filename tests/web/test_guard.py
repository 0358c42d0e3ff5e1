"""Hostile URLs, names and redirects: none connects, which is seen at the socket."""

from collections.abc import Iterator

import pytest

from crag.parts import Page
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


@pytest.fixture
def reader(recorder: Recorder, names: Names) -> HttpPageReader:
    return HttpPageReader(resolver=names, connector=recorder, transcribe=transcribed)


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
    reader = HttpPageReader(resolver=both, connector=recorder, transcribe=transcribed)
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
    reader = HttpPageReader(allow_loopback=True, connector=recorder, transcribe=transcribed)
    urls = [site.at("/text"), at(site, "http://localhost:{port}/text")]
    pages = reader.read(urls, LIMITS)
    assert [page.problem for page in pages] == [None, None]
    assert set(recorder.addresses) <= {"127.0.0.1", "::1"}


def test_allowing_loopback_allows_nothing_else(site: Website, names: Names) -> None:
    recorder = Recorder()
    reader = HttpPageReader(
        allow_loopback=True, resolver=names, connector=recorder, transcribe=transcribed
    )
    reader.read([at(site, template) for template in HOSTILE], LIMITS)
    assert set(recorder.addresses) <= {PUBLIC, "127.0.0.1", "127.1.2.3", "::1"}

"""Fetching one URL from the test's site: redirects, retries, statuses, limits."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import chain, repeat
from time import monotonic
from typing import Any

import httpx
import pytest

from crag.errors import PageError
from crag.web.addresses import Target
from crag.web.bodies import Allowance, PageAllowance
from crag.web.fetching import USER_AGENT, Fetched, Fetcher, FetchError, Terms
from crag.web.transport import GuardedTransport
from tests.web.hostile import PUBLIC, Names, Recorder, redirect
from tests.web.site import PARAGRAPHS, Answer, Website, website


@pytest.fixture
def site() -> Iterator[Website]:
    with website() as running:
        yield running


async def fetch(url: str, seconds: float = 3, most: int = 1_000_000, **terms: Any) -> Fetched:
    until = asyncio.get_running_loop().time() + seconds
    asked = Terms(until, most, terms.pop("share", PageAllowance(Allowance(10**8))), **terms)
    async with GuardedTransport(allow_loopback=True) as transport:
        return await Fetcher(transport, longest_wait=0.01).fetch(url, asked)


async def failure(url: str, **terms: Any) -> PageError:
    with pytest.raises(PageError) as caught:
        await fetch(url, **terms)
    return caught.value


async def test_a_page(site: Website) -> None:
    fetched = await fetch(site.at("/text"))
    assert fetched == (site.at("/text"), "text/plain; charset=utf-8", fetched.body)
    assert fetched.body.decode() == "\n\n".join(PARAGRAPHS)


async def test_what_the_site_learns(site: Website) -> None:
    site.answers["/cookie"] = Answer(
        status=302, headers={"Location": "/text", "Set-Cookie": "id=1; Path=/"}
    )
    await fetch(site.at("/cookie#secret"))
    first, second = (request.headers for request in site.requests)
    assert site.paths() == ["/cookie", "/text"]
    assert first == second
    assert set(first) == {"host", "user-agent", "accept", "accept-encoding"}
    assert first["host"] == f"127.0.0.1:{site.server_port}"
    assert first["user-agent"] == USER_AGENT
    assert USER_AGENT.startswith("crag/")


async def test_the_environment_names_no_proxy(
    site: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await fetch(site.at("/text"))).body


async def test_the_host_header_keeps_the_name(site: Website) -> None:
    recorder = Recorder()
    until = asyncio.get_running_loop().time() + 3
    async with GuardedTransport(resolver=Names(), connector=recorder) as transport:
        url = f"http://public.example:{site.server_port}/text"
        await Fetcher(transport).fetch(url, Terms(until, 10_000, PageAllowance(Allowance(10_000))))
    assert recorder.addresses == [PUBLIC]
    assert site.requests[0].headers["host"] == f"public.example:{site.server_port}"


@contextmanager
def listening(answers: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """Accept one connection for each answer, keep what came first on it, send, and close."""
    received: list[bytes] = []

    def serve() -> None:
        for answer in answers:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    received.append(connection.recv(65536))
                    connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], received
    thread.join()


async def test_tls_names_the_host_and_not_the_address() -> None:
    with listening([b"no TLS"]) as (port, received):
        until = asyncio.get_running_loop().time() + 3
        terms, url = (
            Terms(until, 10, PageAllowance(Allowance(10))),
            f"https://public.example:{port}/",
        )
        async with GuardedTransport(resolver=Names(), connector=Recorder()) as transport:
            with pytest.raises(PageError) as caught:
                await Fetcher(transport).fetch(url, terms)
    assert caught.value.problem == "network"
    assert received[0][0] == 0x16  # A TLS handshake.
    assert b"public.example" in received[0]
    assert PUBLIC.encode() not in received[0]


async def test_redirects_are_followed(site: Website) -> None:
    fetched = await fetch(site.at("/to-article"))
    assert fetched.url == site.at("/article")
    assert site.paths() == ["/to-article", "/article"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_each_redirecting_status(site: Website, status: int) -> None:
    site.answers["/go"] = Answer(status=status, headers={"Location": "text?a=b c"})
    assert (await fetch(site.at("/go"))).url == site.at("/text?a=b c")


@pytest.mark.parametrize("status", [300, 302, 304])
async def test_a_redirect_to_nowhere_is_a_status(site: Website, status: int) -> None:
    site.answers["/go"] = Answer(status=status)
    error = await failure(site.at("/go"))
    assert (error.problem, str(status) in error.message) == ("status", True)


def chained(site: Website, redirects: int) -> str:
    for number in range(redirects):
        following = "/text" if number == 0 else f"/hop{number - 1}"
        site.answers[f"/hop{number}"] = Answer(status=302, headers={"Location": following})
    return site.at(f"/hop{redirects - 1}")


async def test_five_redirects_and_no_more(site: Website) -> None:
    assert (await fetch(chained(site, 5))).url == site.at("/text")
    site.requests.clear()
    error = await failure(chained(site, 6))
    assert (error.problem, error.message) == ("refused", "more than 5 redirects")
    assert len(site.requests) == 6


async def test_circles_end(site: Website) -> None:
    assert "circle" in (await failure(site.at("/loop"))).message
    assert site.paths() == ["/loop"]
    site.answers["/there"] = Answer(status=302, headers={"Location": "/back"})
    site.answers["/back"] = Answer(status=302, headers={"Location": "/there"})
    assert "circle" in (await failure(site.at("/there"))).message


async def test_a_redirect_inside_is_refused(site: Website) -> None:
    assert (await failure(site.at("/to-private"))).problem == "refused"
    assert (await failure(site.at(redirect("file:///etc/passwd")))).problem == "refused"


@pytest.mark.parametrize(
    ("path", "problem", "says"),
    [
        ("/404", "status", "status 404"),
        ("/500", "status", "status 500"),
        ("/nowhere", "status", "status 404"),
        ("/image", "content_type", "'image/png' is not supported"),
        ("/bomb", "too_large", "larger than 1,000,000 bytes"),
        ("/endless", "too_large", "larger than 1,000,000 bytes"),
    ],
)
async def test_failures_say_what_is_wrong(
    site: Website, path: str, problem: str, says: str
) -> None:
    error = await failure(site.at(path))
    assert (error.problem, error.url) == (problem, site.at(path))
    assert says in error.message
    assert len(site.requests) == 1


async def test_a_failed_status_is_told(site: Website) -> None:
    error = await failure(site.at("/404"))
    assert isinstance(error, FetchError)
    assert error.status == 404


@pytest.mark.parametrize("path", ["/drip", "/slow"])
async def test_time_is_limited_in_total(site: Website, path: str) -> None:
    site.latency["/slow"] = 5
    begun = monotonic()
    assert (await failure(site.at(path), seconds=0.15)).problem == "timeout"
    assert monotonic() - begun < 2


async def test_redirects_share_the_time(site: Website) -> None:
    last = chained(site, 5)
    for number in range(5):
        site.latency[f"/hop{number}"] = 0.08
    assert (await failure(last, seconds=0.25)).problem == "timeout"


async def test_a_server_that_is_not_there() -> None:
    error = await failure("http://127.0.0.1:9/")
    assert error.problem == "network"
    assert error.message.startswith("no connection")


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_status_that_heals_is_asked_again(site: Website, status: int) -> None:
    site.statuses["/text"] = [status]
    assert (await fetch(site.at("/text"))).body
    assert len(site.requests) == 2


async def test_asked_again_once(site: Website) -> None:
    site.statuses["/text"] = [503, 502, 503]
    assert "status 502" in (await failure(site.at("/text"))).message
    assert len(site.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 500, 501])
async def test_other_statuses_are_final(site: Website, status: int) -> None:
    site.statuses["/text"] = [status]
    assert f"status {status}" in (await failure(site.at("/text"))).message
    assert len(site.requests) == 1


def in_a_moment(seconds: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize("after", ["0", in_a_moment(-5)], ids=["now", "past date"])
async def test_too_many_requests_with_a_time(site: Website, after: str) -> None:
    site.statuses["/text"], site.retry_after = [429], after
    assert (await fetch(site.at("/text"))).body
    assert len(site.requests) == 2


@pytest.mark.parametrize("after", ["60", "date", "soon", "", "9" * 400])
async def test_too_many_requests_for_longer_than_there_is(site: Website, after: str) -> None:
    site.retry_after = in_a_moment(120) if after == "date" else after
    site.statuses["/text"] = [429]
    begun = monotonic()
    assert "status 429" in (await failure(site.at("/text"))).message
    assert len(site.requests) == 1
    assert monotonic() - begun < 2


@pytest.mark.parametrize(
    ("raised", "problem", "says"),
    [
        (httpx.ConnectTimeout("slow"), "timeout", "no connection in time"),
        (httpx.InvalidURL("odd"), "refused", "not fetched: it cannot be read as a URL"),
        (httpx.UnsupportedProtocol("odd"), "network", "no connection: odd"),
    ],
)
async def test_what_a_transport_raises_is_a_page_error(
    raised: Exception, problem: str, says: str
) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise raised

    until = asyncio.get_running_loop().time() + 3
    terms = Terms(until, 10, PageAllowance(Allowance(10)))
    with pytest.raises(PageError) as caught:
        await Fetcher(httpx.MockTransport(fail)).fetch("http://example.org/", terms)
    assert (caught.value.problem, caught.value.message) == (problem, says)


GOOD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nwords"


@pytest.mark.parametrize(
    "broken", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\nwo"]
)
async def test_a_broken_connection_is_tried_again(broken: bytes) -> None:
    with listening([broken, GOOD]) as (port, received):
        share = PageAllowance(Allowance(100))
        fetched = await fetch(f"http://127.0.0.1:{port}/", share=share)
    assert fetched.body == b"words"
    assert len(received) == 2
    assert share.spent == 5 + (2 if broken else 0)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X-Header: very long\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 300_000,
        b"HTTP/1.1 302 Found\r\nLocation: /\x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot hexadecimal\r\n",
    ],
)
async def test_what_is_not_http(answer: bytes) -> None:
    with listening([answer, answer]) as (port, _):
        assert (await failure(f"http://127.0.0.1:{port}/")).problem == "network"


@pytest.mark.parametrize(
    ("body", "content_type"), [(b"<!doctype html><p>x", "text/html"), (b"words", "text/plain")]
)
async def test_a_missing_type_is_guessed(body: bytes, content_type: str) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with listening([answer]) as (port, _):
        assert (await fetch(f"http://127.0.0.1:{port}/")).content_type == content_type


async def test_endless_interim_answers_end() -> None:
    def serve() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                for part in chain(
                    [b"HTTP/1.1 100 Continue\r\n\r\n"], repeat(b"HTTP/1.1 103\r\n\r\n")
                ):
                    connection.sendall(part)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        error = await failure(f"http://127.0.0.1:{listener.getsockname()[1]}/", seconds=0.2)
    thread.join()
    assert error.problem in {"timeout", "network"}


async def test_the_gate_stands_before_every_request(site: Website) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def gate(target: Target) -> AsyncIterator[None]:
        if target.url.endswith("/article"):
            raise PageError(target.url, "robots", "not this one")
        seen.append(target.url)
        yield

    assert (await failure(site.at("/to-article"), gate=gate)).problem == "robots"
    assert seen == [site.at("/to-article")]
    assert site.paths() == ["/to-article"]


async def test_any_type_where_none_is_named(site: Website) -> None:
    assert (await fetch(site.at("/image"), types=())).content_type == "image/png"

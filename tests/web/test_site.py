"""The test site answers as its docstring says; the tests of the readers rely on it."""

import time
from collections.abc import Iterator

import httpx
import pytest

from tests.web.site import BOMB_BYTES, Answer, Website, website


@pytest.fixture
def site() -> Iterator[Website]:
    with website() as running:
        yield running


@pytest.fixture
def client(site: Website) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url, timeout=5, trust_env=False) as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "status", "content_type"),
    [
        ("/article", 200, "text/html; charset=utf-8"),
        ("/navigation", 200, "text/html; charset=utf-8"),
        ("/no-heading", 200, "text/html; charset=utf-8"),
        ("/latin-1", 200, "text/html; charset=latin-1"),
        ("/utf-16", 200, "text/html"),
        ("/text", 200, "text/plain; charset=utf-8"),
        ("/pdf", 200, "application/pdf"),
        ("/gzip", 200, "text/html; charset=utf-8"),
        ("/image", 200, "image/png"),
        ("/empty", 200, "text/html; charset=utf-8"),
        ("/injected", 200, "text/html; charset=utf-8"),
        ("/robots.txt", 404, "text/html; charset=utf-8"),
        ("/nowhere", 404, "text/html; charset=utf-8"),
        ("/404", 404, "text/html; charset=utf-8"),
        ("/500", 500, "text/html; charset=utf-8"),
        ("/429", 429, "text/html; charset=utf-8"),
    ],
)
def test_answers(client: httpx.Client, path: str, status: int, content_type: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, content_type)
    assert answer.content


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/loop", "/loop"),
        ("/to-private", "http://10.0.0.1/"),
        ("/to-article", "/article"),
        ("/redirect?to=http%3A%2F%2F0x7f.1%2F", "http://0x7f.1/"),
    ],
)
def test_redirects(client: httpx.Client, path: str, target: str) -> None:
    assert client.get(path).headers["location"] == target


def test_what_is_set_and_what_is_recorded(site: Website, client: httpx.Client) -> None:
    site.robots = "User-agent: *\nDisallow: /"
    site.answers["/own"] = Answer(b"mine", "text/plain")
    site.statuses["/own"] = [503, 429]
    assert client.get("/robots.txt").text == site.robots
    answers = [client.get("/own?n=1") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [503, 429, 200]
    assert answers[1].headers["retry-after"] == "1"
    assert site.paths() == ["/robots.txt", *["/own?n=1"] * 3]
    assert site.requests[0].headers["host"] == site.url.removeprefix("http://")
    assert site.connections == 1


def test_a_path_can_be_slow(site: Website, client: httpx.Client) -> None:
    site.latency["/text"] = 30
    with pytest.raises(httpx.ReadTimeout):
        client.get("/text", timeout=0.05)


def test_the_bomb_is_small_and_becomes_large(client: httpx.Client) -> None:
    with client.stream("GET", "/bomb") as answer:
        assert int(answer.headers["content-length"]) < 200_000
        assert sum(len(part) for part in answer.iter_bytes()) == BOMB_BYTES


@pytest.mark.parametrize("path", ["/drip", "/endless", "/text"])
def test_it_stops_at_once_whatever_is_under_way(path: str) -> None:
    with httpx.Client(timeout=5, trust_env=False) as client:
        with website() as site:
            site.drip_seconds = site.latency["/text"] = 30
            if path == "/text":
                with pytest.raises(httpx.ReadTimeout):
                    client.get(site.at(path), timeout=0.05)
            else:
                stream = client.send(client.build_request("GET", site.at(path)), stream=True)
                assert next(stream.iter_raw())
            began = time.monotonic()
        assert time.monotonic() - began < 2

"""Tavily's client against a server on loopback that answers as Tavily does."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from crag.errors import SearchError
from crag.parts import WebSearcher
from crag.web import TavilySearcher

RESULTS = {
    "results": [
        {"title": "Ada", "url": "https://example.org/ada", "content": "Ada wrote it."},
        {"title": "No address", "content": "cannot be cited"},
        {"title": None, "url": "https://example.org/2", "content": None},
    ]
}


class Server(ThreadingHTTPServer):
    """Answers the scripted statuses in turn, then 200; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses: list[int] = []
        self.body: Any = RESULTS
        self.delay = threading.Event()
        self.seconds = 0.0
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        key = self.headers["Authorization"]
        self.server.requests.append(json.loads(body) | {"key": key})
        self.server.delay.wait(self.server.seconds)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        failed = {"detail": {"error": "the server's words"}}
        reply = self.server.body if status == 200 else failed
        text = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.delay.set()
        running.shutdown()
        thread.join()


def searcher(server: Server, timeout: float = 5) -> TavilySearcher:
    return TavilySearcher("tvly-secret", base_url=server.url, timeout=timeout, longest_wait=0.01)


async def search(server: Server, way: str, **options: Any) -> list[Any]:
    made = searcher(server, **options)
    return made.search("ada", 5) if way == "search" else await made.asearch("ada", 5)


WAYS = pytest.mark.parametrize("way", ["search", "asearch"])


@WAYS
async def test_hits_have_title_url_and_snippet(server: Server, way: str) -> None:
    assert await search(server, way) == [
        ("Ada", "https://example.org/ada", "Ada wrote it."),
        ("", "https://example.org/2", ""),
    ]
    assert server.requests[0]["max_results"] == 5
    assert server.requests[0]["key"] == "Bearer tvly-secret"


@WAYS
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_what_can_heal_is_tried_again(server: Server, way: str, status: int) -> None:
    server.statuses = [status, status]
    assert len(await search(server, way)) == 2
    assert len(server.requests) == 3


@WAYS
@pytest.mark.parametrize(
    ("statuses", "problem", "requests"),
    [
        ([401], "key", 1),
        ([403], "request", 1),
        ([432], "request", 1),
        ([400], "request", 1),
        ([429] * 3, "quota", 3),
        ([500] * 3, "server", 3),
    ],
)
async def test_failures_say_what_is_wrong(
    server: Server, way: str, statuses: list[int], problem: str, requests: int
) -> None:
    server.statuses = list(statuses)
    with pytest.raises(SearchError) as caught:
        await search(server, way)
    assert caught.value.problem == problem
    assert len(server.requests) == requests
    assert "tvly-secret" not in str(caught.value)


@WAYS
async def test_no_answer_in_time(server: Server, way: str) -> None:
    server.seconds = 5
    with pytest.raises(SearchError) as caught:
        await search(server, way, timeout=0.05)
    assert caught.value.problem == "timeout"


@WAYS
async def test_a_reply_that_is_not_json(server: Server, way: str) -> None:
    server.body = b"<html>maintenance</html>"
    with pytest.raises(SearchError) as caught:
        await search(server, way)
    assert caught.value.problem == "server"


@WAYS
async def test_no_results_at_all(server: Server, way: str) -> None:
    server.body = {"results": None}
    assert await search(server, way) == []


def test_a_server_that_is_not_there() -> None:
    gone = TavilySearcher("tvly-x", base_url="http://127.0.0.1:9", timeout=1, longest_wait=0.01)
    with pytest.raises(SearchError) as caught:
        gone.search("ada", 5)
    assert caught.value.problem == "server"


def test_the_key_is_needed_and_not_shown() -> None:
    with pytest.raises(SearchError, match="set TAVILY_API_KEY"):
        TavilySearcher(" ")
    made = TavilySearcher("tvly-secret")
    assert isinstance(made, WebSearcher)
    assert "secret" not in repr(made)

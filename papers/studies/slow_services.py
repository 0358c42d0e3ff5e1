"""A chat model, a search service and six sites on loopback, each with a latency that is given.

They run in a process of their own, so that what is measured does not share an interpreter with
them. Tokens are counted as words.
"""

import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

MODEL, SEARCH, PAGES = 0.3, 0.4, (0.1, 0.3, 0.5, 0.7, 0.9)
"""Seconds."""
_MILLISECONDS = {f"{1000 * seconds:.0f}": seconds for seconds in PAGES}
EVERY_ONE = "[all pass]"
"""A question with these words gets a yes for every document; any other one for the first alone."""
_PARAGRAPH = (
    "Strips that the evaluator finds relevant are kept, and this is number {0} of them. " * 3
)
PAGE = "<title>Strips</title><article><h1>Strips</h1>{}</article>".format(
    "".join(f"<p>{_PARAGRAPH.format(number)}</p>" for number in range(8))
)


class Addresses(NamedTuple):
    """Where the services listen."""

    model: str
    search: str
    sites: list[str]
    """A page on each of five sites."""
    one_site: list[str]
    """Five pages that take the same times, on one site."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, handler: type[BaseHTTPRequestHandler], seconds: float) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.seconds = seconds
        self.hits: Sequence[Mapping[str, str]] = ()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away, and everything else."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def send(
        self, body: str, content_type: str = "application/json", seconds: float | None = None
    ) -> None:
        time.sleep(self.server.seconds if seconds is None else seconds)
        content = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None: ...


class _Model(_Handler):
    def do_POST(self) -> None:
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        texts = [message["content"] for message in sent["messages"]]
        reply = _reply(" ".join(texts), texts[-1])
        message = {"role": "assistant", "content": reply}
        used = sum(len(text.split()) for text in texts), len(reply.split())
        usage = dict(zip(("prompt_tokens", "completion_tokens"), used, strict=True))
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self.send(
            json.dumps(
                {"id": "1", "object": "chat.completion", "created": 1, "model": "m",
                 "choices": [choice], "usage": usage | {"total_tokens": sum(used)}}
            )
        )  # fmt: skip


class _Search(_Handler):
    def do_GET(self) -> None:
        self.send(json.dumps({"results": self.server.hits}))


class _Site(_Handler):
    """Sends its page after its seconds, under /MILLISECONDS after those, anything else at once."""

    def do_GET(self) -> None:
        place = self.path.strip("/")
        if place not in {"page", *_MILLISECONDS}:
            self.send_error(404)
            return
        self.send(PAGE, "text/html", _MILLISECONDS.get(place))


@contextmanager
def services(scale: float = 1.0) -> Iterator[Addresses]:
    """Run the services in a process of their own; `scale` multiplies every latency."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, scale), daemon=True)
    process.start()
    try:
        yield Addresses(*here.recv())
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, scale: float) -> None:
    sites = [_Server(_Site, scale * seconds) for seconds in PAGES]
    search = _Server(_Search, scale * SEARCH)
    search.hits = [
        {"title": "Strips", "url": f"{site.address}/page", "content": _PARAGRAPH.format(place)}
        for place, site in enumerate(sites)
    ]
    model, one_site = _Server(_Model, scale * MODEL), _Server(_Site, 0)
    pages = [f"{site.address}/page" for site in sites]
    pages_of_one = [f"{one_site.address}/{place}" for place in _MILLISECONDS]
    pipe.send((f"{model.address}/v1", search.address, pages, pages_of_one))
    threading.Event().wait()


def _reply(whole: str, prompt: str) -> str:
    if "yes or no" in whole:
        return "yes" if EVERY_ONE in prompt or "Passage 1 " in prompt else "no"
    return "strips, kept" if prompt.rstrip().endswith("query:") else "The relevant ones [1]."

"""A small website on loopback whose pages are good, odd or hostile.

    with website() as site:
        reader.read([site.at("/article")], limits)

`Website.answer` and `_STATIC` say what each path answers: /bomb is gzip of 65 kB that inflates to
64 MiB, /endless is HTML that never ends, /drip HTML of one byte every 50 ms, /to-private redirects
to http://10.0.0.1/. A query is ignored: /article?n=1 and /article?n=2 are URLs of the same page.
"""

import gzip
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

PAGES = Path(__file__).parent / "pages"
BOMB_BYTES = 2**26
"""What /bomb inflates to."""
PARAGRAPHS = (
    "The tide mill of Sandle Creek ground barley for two hundred years.",
    "Its wheel turned twice a day, whenever the pond behind the dam ran out.",
    "Since 1931 it has been a museum of milling, open from May to October.",
)
"""What /text and /pdf say; the PDF also has the title `The tide mill`."""
HTML = "text/html; charset=utf-8"


class Request(NamedTuple):
    """What a client asked for."""

    path: str
    """With its query."""
    headers: Mapping[str, str]
    """Names in lower case."""


class Answer(NamedTuple):
    """What a path answers; an iterator of bytes is sent as it comes, then the connection ends."""

    body: bytes | Iterator[bytes] = b""
    content_type: str = HTML
    status: int = 200
    headers: Mapping[str, str] = {}


class Website(ThreadingHTTPServer):
    """The running site: settings to change and records to read, at any time."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.robots: str | None = None
        """The text of /robots.txt."""
        self.answers: dict[str, Answer] = {}
        """Answers of the test's own, by path; they come before those listed above."""
        self.latency: defaultdict[str, float] = defaultdict(float)
        """Seconds that a path waits before it answers."""
        self.statuses: defaultdict[str, list[int]] = defaultdict(list)
        """Statuses that a path answers in turn before it answers as it should."""
        self.requests: list[Request] = []
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        """Scheme, host and port, without a slash at the end."""
        return f"http://127.0.0.1:{self.server_port}"

    def at(self, path: str) -> str:
        """Return the URL of a path."""
        return self.url + path

    def paths(self) -> list[str]:
        """Return the paths asked for, in the order of arrival."""
        return [request.path for request in self.requests]

    def answer(self, path: str, query: str) -> Answer:
        """Return what `path` answers."""
        if self.statuses[path]:
            return self._failure(self.statuses[path].pop(0))
        return self.answers.get(path) or self._dynamic(path, query) or _static(path)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients of hostile pages go away at any point."""

    def _failure(self, status: int) -> Answer:
        return Answer(b"<p>The server's own words.</p>", status=status)

    def _dynamic(self, path: str, query: str) -> Answer | None:
        match path:
            case "/robots.txt" if self.robots is not None:
                return Answer(self.robots.encode(), "text/plain")
            case "/404" | "/500" | "/429":
                return self._failure(int(path[1:]))
            case "/redirect":
                return _redirect(parse_qs(query)["to"][0])
            case "/drip":
                return Answer(self._drip())
            case "/endless":
                return Answer(self._endless())
        return None

    def _drip(self) -> Iterator[bytes]:
        for byte in b"<!doctype html><title>Drip</title><h1>Drip</h1><p>" + b"drop " * 10_000:
            yield bytes([byte])
            self.stopping.wait(0.05)

    def _endless(self) -> Iterator[bytes]:
        yield b"<!doctype html><title>Endless</title><h1>Endless</h1>"
        while True:
            yield b"<p>This paragraph comes again and again, and the page has no end.</p>" * 500


class _Handler(BaseHTTPRequestHandler):
    server: Website  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(Request(self.path, headers))
        self.server.stopping.wait(self.server.latency[url.path])
        with suppress(OSError):  # A client that has had enough has gone.
            self._send(self.server.answer(url.path, url.query))

    def _send(self, answer: Answer) -> None:
        body = answer.body
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        length = ("Connection", "close")
        if isinstance(body, bytes):
            length = ("Content-Length", str(len(body)))
        for name, value in (length, *answer.headers.items()):
            self.send_header(name, value)
        self.end_headers()
        for part in [body] if isinstance(body, bytes) else body:
            if self.server.stopping.is_set():
                break
            self.wfile.write(part)

    def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002


@contextmanager
def website() -> Iterator[Website]:
    """Start the site on a free port of 127.0.0.1, and stop it within milliseconds."""
    with Website() as site:
        thread = threading.Thread(target=site.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield site
        finally:
            site.stopping.set()
            site.shutdown()
            thread.join()


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
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # What was not asked for is not waited for.
    thread.join()


def page(name: str) -> bytes:
    """Return one of the HTML files in tests/web/pages, as UTF-8."""
    return (PAGES / f"{name}.html").read_bytes()


def _static(path: str) -> Answer:
    make = _STATIC.get(path)
    return make() if make else Answer(b"<p>There is no such page.</p>", status=404)


_STATIC: dict[str, Callable[[], Answer]] = {
    "/article": lambda: Answer(page("article")),
    "/navigation": lambda: Answer(page("navigation")),
    "/injected": lambda: Answer(page("injected")),
    "/empty": lambda: Answer(page("empty")),
    "/text": lambda: Answer("\n\n".join(PARAGRAPHS).encode(), "text/plain; charset=utf-8"),
    "/pdf": lambda: Answer(pdf(), "application/pdf"),
    "/gzip": lambda: Answer(gzip.compress(page("article")), headers={"Content-Encoding": "gzip"}),
    "/bomb": lambda: Answer(_bomb(), headers={"Content-Encoding": "gzip"}),
    "/image": lambda: Answer(b"\x89PNG\r\n\x1a\n" + bytes(64), "image/png"),
    "/loop": lambda: _redirect("/loop"),
    "/to-private": lambda: _redirect("http://10.0.0.1/"),
}


def _redirect(to: str) -> Answer:
    return Answer(status=302, headers={"Location": to})


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(BOMB_BYTES))


@cache
def pdf() -> bytes:
    """Return `PARAGRAPHS` as a PDF of one page."""
    from reportlab.pdfgen.canvas import Canvas

    written = BytesIO()
    canvas = Canvas(written, invariant=True)
    canvas.setTitle("The tide mill")
    for number, paragraph in enumerate(PARAGRAPHS):
        canvas.drawString(72, 760 - 40 * number, paragraph)
    canvas.save()
    return written.getvalue()

"""A scripted HTTP server on loopback, and what one that speaks OpenAI's protocol replies."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit


class Loopback(ThreadingHTTPServer):
    """Answers `statuses` in turn, then 200 with `body`; keeps what it was asked."""

    daemon_threads = True
    parse: Callable[[bytes], dict[str, Any]] = staticmethod(json.loads)
    """What the body of a request becomes among `requests`."""

    def __init__(self, body: Any) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.body = body
        """What a request with status 200 gets, or a function from the request to that: bytes as
        they are, an iterator piece by piece until the server stops, anything else as JSON. A pair
        is a status of its own and what comes with it."""
        self.failure: Any = {"detail": {"error": "the server's words"}}
        self.statuses: list[int] = []
        self.headers: dict[int, dict[str, str]] = {}
        """Further headers of the answers with a status, such as Retry-After."""
        self.seconds = 0.0
        """How long each answer takes."""
        self.stopping = threading.Event()
        self.asked = threading.Event()
        """Set by the first request."""
        self.requests: list[dict[str, Any]] = []
        """The JSON (POST) or query (GET) of each request, with its `path` and `authorization`, and
        all its `headers` by their names in lower case."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


LoopbackT = TypeVar("LoopbackT", bound=Loopback)


class _Handler(BaseHTTPRequestHandler):
    server: Loopback

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_packed = self.headers.get("Content-Encoding") == "gzip"
        self._answer(self.server.parse(gzip.decompress(body) if is_packed else body))

    def do_PUT(self) -> None:
        self.do_POST()

    def do_GET(self) -> None:
        self._answer(dict(parse_qsl(urlsplit(self.path).query)))

    def _answer(self, sent: dict[str, Any]) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        about = {"path": urlsplit(self.path).path, "authorization": headers.get("authorization")}
        self.server.requests.append(sent | about | {"headers": headers})
        self.server.asked.set()
        self.server.stopping.wait(self.server.seconds)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        body = self.server.body
        found = body(sent) if callable(body) and status == 200 else body
        reply = found if status == 200 else self.server.failure
        if isinstance(reply, tuple):
            status, reply = reply
        if isinstance(reply, Iterator):
            self._write_pieces(reply)
            return
        text = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        with suppress(ConnectionError):  # A client that timed out has gone.
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            for name, value in self.server.headers.get(status, {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

    def _write_pieces(self, pieces: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()  # Without a length, the reply ends with the connection.
        with suppress(ConnectionError):
            for piece in pieces:
                if self.server.stopping.is_set():
                    return
                self.wfile.write(piece)
                self.wfile.flush()

    def log_message(self, *_: Any) -> None: ...


def serving(body: Any) -> AbstractContextManager[Loopback]:
    """Start a server of `body` on a free port, and stop it."""
    return started(Loopback(body))


@contextmanager
def started(server: LoopbackT) -> Iterator[LoopbackT]:
    """Start a server, and stop it."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.stopping.set()
            server.shutdown()
            thread.join()


def completion(
    text: str | None, tokens: tuple[int, int] = (100, 10), *, finish: str = "stop", **message: Any
) -> dict[str, Any]:
    """Return a reply, for which so many tokens were read and written."""
    said = {"role": "assistant", "content": text, **message}
    read, written = tokens
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": finish, "message": said}],
        "usage": {
            "prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written,
        },
    }  # fmt: skip


def streamed(*pieces: str, finish: str = "stop") -> bytes:
    """Return a reply in pieces; without a reason to finish, the stream just ends."""
    chunks = [
        {
            "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}],
        }
        for piece in pieces
    ]  # fmt: skip
    end = {"index": 0, "delta": {}, "finish_reason": finish}
    chunks += [chunks[0] | {"choices": [end]}] if finish else []
    lines = [*map(json.dumps, chunks), "[DONE]"]
    return "".join(f"data: {line}\n\n" for line in lines).encode()

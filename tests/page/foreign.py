"""A site of somebody else, and what it can do to a server of this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from langgraph_sdk import get_sync_client

SWITCHES = "a2a,crons,docs,event_streaming,metrics,store,ui,webhooks"
"""Everything that the guard can switch on."""
_LOOPBACK = {"webhooks": {"url": {"disable_loopback": False, "require_https": False}}}
GUARDED: dict[str, Any] = {"http": {"app": "crag.serve.studio:app", "cors": {"allow_origins": []}}}
UNGUARDED: dict[str, Any] = {
    "http": {
        "app": f"{Path(__file__).with_name('unguarded.py')}:app",
        "cors": {
            "allow_origins": ["https://smith.langchain.com"],
            "allow_methods": ["*"],
            "allow_headers": ["*"],
        },
    }
}
"""As it was before there was a guard."""
GUARDED |= _LOOPBACK
UNGUARDED |= _LOOPBACK
SCRIPT = Path(__file__).with_name("attack.js")
PAGE = b"<!doctype html><title>A page</title><body>"
KNOWN = "11111111-2222-4333-8444-555555555555"
"""The thread whose id the page knows; the script names it too."""


class Site(ThreadingHTTPServer):
    """Shows a page that attacks, and keeps what is sent to its address for webhooks."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.caught: list[bytes] = []

    @property
    def hook(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        self._answer(PAGE, "html")

    def do_POST(self) -> None:
        self.server.caught.append(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer(b"", "plain")

    def _answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", f"text/{kind}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@contextmanager
def visiting() -> Iterator[Site]:
    """Put the site on a free port of this machine, under whatever name."""
    with Site() as site:
        thread = Thread(target=site.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield site
        finally:
            site.shutdown()
            thread.join()


def held(url: str) -> dict[str, list[Any]]:
    """Return everything that a server holds, for comparison."""
    with get_sync_client(url=url) as client:
        threads = client.threads.search(limit=1000, sort_by="thread_id")
        runs = [run for one in threads for run in client.runs.list(one["thread_id"], limit=100)]
        return {
            "threads": threads,
            "runs": sorted(runs, key=lambda run: run["run_id"]),
            "states": [client.threads.get_state(one["thread_id"])["values"] for one in threads],
            "crons": client.crons.search(limit=1000),
            "store": client.store.search_items((), limit=1000)["items"],
            "assistants": client.assistants.search(limit=1000, sort_by="assistant_id"),
        }

"""Small files that become large end neither the server nor `crag index`, and cost only time."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from tests.commands import crag, crag_process, variables
from tests.page.serving import free_port, serving_guide, wait_for
from tests.repeating import times
from tests.torture.bombs import bombs
from tests.torture.telling import tell

NUMBER = times(4, 60, 500)
LIMITS = {"CRAG_READ_SECONDS": "1"}
GOOD = b"# Cape Merrow\n\nThe lighthouse of Cape Merrow was designed by Edith Halloran.\n"
MEGABYTES = 100
"""By which the server may grow."""
SECONDS = 10.0
"""Within which it answers others at any time, on a machine that does other work too."""
_ROUTES = """
import sys, uvicorn
from crag.serve.app import create
uvicorn.run(create(), port=int(sys.argv[1]), log_level="error")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bombs")
    (path / "good.md").write_bytes(GOOD)
    for name, content in bombs(NUMBER):
        (path / name).write_bytes(content)
    return path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Serve the documents: in full by `crag serve`, else by its routes alone, which start fast."""
    with _serve(tmp_path) if times(0, 1) else _routes(tmp_path) as url:
        yield url


@contextmanager
def _serve(folder: Path) -> Iterator[str]:
    documents = folder / "documents"
    documents.mkdir()
    (documents / "known.md").write_bytes(GOOD)
    with serving_guide(folder, "--no-token", documents=documents, **LIMITS) as page:
        yield page.rstrip("/")


@contextmanager
def _routes(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-c", _ROUTES, str(port)]
    environment = variables({"CRAG_INDEX": str(folder / "index"), **LIMITS})
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _memory(url: str) -> float:
    """Return the megabytes of the process that serves a URL, without those that it starts."""
    port = int(url.rpartition(":")[2])
    listening = (one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN)
    pid = next(one.pid for one in listening if getattr(one.laddr, "port", 0) == port)
    return psutil.Process(pid).memory_info().rss / 1e6


def _ordinary(number: int) -> Iterator[tuple[str, str]]:
    """Yield documents for which the server loads what any document needs, and makes room for it.

    The language of the first one is unclear, so the model that tells languages is loaded.
    """
    yield "unclear.html", f"<p>{'word ' * 40}"
    for size in range(number):
        parts = (f"Part {part}. {GOOD.decode() * 12}" for part in range(size % 8 + 1))
        yield f"ordinary{size}.md", "\n\n".join(parts)


class _Visitor(threading.Thread):
    """Asks the server again and again whether it is there."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.slowest, self.visits = url, 0.0, 0
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.2):
            start = time.monotonic()
            httpx.get(f"{self.url}/ok", timeout=120).raise_for_status()
            self.slowest = max(self.slowest, time.monotonic() - start)
            self.visits += 1


def test_uploads_cost_no_more_than_themselves(folder: Path, server: str) -> None:
    kind = {"content-type": "application/octet-stream"}
    with httpx.Client(base_url=server, headers=kind, timeout=300) as client:
        for name, text in _ordinary(times(6, 30)):
            assert client.put(f"/api/documents/{name}", content=text.encode()).status_code == 200
        visitor, before, most = _Visitor(server), _memory(server), 0.0
        visitor.start()
        start, taken, refused = time.monotonic(), 0, 0
        grown: list[tuple[float, str]] = []
        for file in sorted(folder.iterdir()):
            reply = client.put(f"/api/documents/{file.name}", content=file.read_bytes())
            assert reply.status_code in {200, 422}, reply.text
            taken += reply.status_code == 200
            refused += reply.status_code == 422
            now = _memory(server)
            grown.append((now - max(most, before), file.name))
            most = max(most, now)
        seconds = time.monotonic() - start
        visitor.ended.set()
        visitor.join()
        tell(
            f"{taken + refused} uploads, {refused} refused, in {seconds:.0f} s; the server has "
            f"{before:.0f} MB before and {most:.0f} MB at most; the slowest of {visitor.visits} "
            f"other replies took {visitor.slowest:.1f} s; it grew most with "
            + ", ".join(f"{name} ({more:.0f} MB)" for more, name in sorted(grown)[:-6:-1])
        )
        assert refused
        assert most - before < MEGABYTES
        assert visitor.visits > 1
        assert visitor.slowest < SECONDS
        listed = {Path(one["path"]).name for one in client.get("/api/documents").json()["files"]}
        assert {"good.md", "unclear.html"} <= listed


def test_the_index_of_a_folder_has_the_rest(folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    start = time.monotonic()
    command = ("index", folder, "--index", index, "--json")
    done = crag_process(*command, environment=LIMITS, patience=7200)
    report = json.loads(done.stdout)
    tell(
        f"{NUMBER + 1} files indexed in {time.monotonic() - start:.0f} s: {report['added']} added, "
        f"{len(report['skipped'])} skipped"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert report["added"] + len(report["skipped"]) == NUMBER + 1
    asked = crag("ask", "Who designed Cape Merrow?", "--index", index)
    assert "Edith Halloran" in asked.stdout

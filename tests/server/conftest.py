"""One server for the whole folder: what `langgraph.json` names, served as users serve it.

With `--production` it is that of `crag serve --postgres`, with two processes.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_sync_client

from tests.commands import crag
from tests.loopback import Loopback
from tests.loopback import serving as looping
from tests.page.serving import free_port
from tests.postgres import postgres
from tests.server.chat import Chat, chatting
from tests.telemetry.receiver import Receiver, receiving

ROOT = Path(__file__).parents[2]
HOSTILE = (
    "The harbour of Quellmoor <script>document.title = 'owned'</script> was dug in 1731. "
    '<img src=x onerror="alert(1)"> Its keeper was <b>Ilse Brandt</b>.'
)
"""A document with markup in its text, as a page about markup has it."""
KEY = "sk-of-the-test-0123456789"
_SECONDS_TO_START = 300


@pytest.fixture(scope="session")
def chat() -> Iterator[Chat]:
    """The chat model of the graphs."""
    with chatting() as running:
        yield running


@pytest.fixture(scope="session")
def search() -> Iterator[Loopback]:
    """A SearXNG server with one hit, which is a page of its own."""
    with looping(None) as running:
        hit = {
            "title": "Correction",
            "url": f"{running.url}/page",
            "content": "Corrective RAG searches the web when the action is Incorrect.",
        }
        running.body = {"query": "", "results": [hit]}
        yield running


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    """Where the server sends its telemetry."""
    with receiving() as running:
        yield running


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server runs: with an index, and without anything of the checkout's state."""
    here = tmp_path_factory.mktemp("server")
    (here / "harbour.txt").write_text(HOSTILE, encoding="utf-8")
    # All that is read costs time with each question, so not more of the guide than is asked about.
    action = (ROOT / "docs" / "method" / "action.md").read_text("utf-8")
    (here / "action.md").write_text(action.partition("\n## What happens at")[0], encoding="utf-8")
    sources = [here / "action.md", here / "harbour.txt"]
    assert crag("index", *sources, "--index", here / "index").returncode == 0
    shutil.copy(ROOT / "langgraph.json", here)
    (here / "graph").symlink_to(ROOT / "graph")
    return here


@pytest.fixture(scope="session")
def production(request: pytest.FixtureRequest) -> bool:
    """Whether the server is that of `crag serve --postgres`."""
    return bool(request.config.getoption("--production"))


@pytest.fixture(scope="session")
def url(
    folder: Path, chat: Chat, search: Loopback, receiver: Receiver, *, production: bool
) -> Iterator[str]:
    """Start the server with the model and the search on loopback; stop all it started."""
    port = free_port()
    address, log = f"http://127.0.0.1:{port}", folder / "server.log"
    with ExitStack() as stack:
        if production:
            command = _production(stack.enter_context(postgres()))
        else:
            command = ["langgraph", "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1"]
            command += ["--n-jobs-per-worker", "8"]
        program = Path(sys.executable).with_name(command[0])
        server = stack.enter_context(
            subprocess.Popen(
                [program, *command[1:], "--port", str(port)], cwd=folder,
                env=_environment(folder, chat, search, receiver), stderr=subprocess.STDOUT,
                stdout=stack.enter_context(log.open("w")),
            )
        )  # fmt: skip
        try:
            _wait_for(address, server, log)
            yield address
        finally:
            server.terminate()
            server.wait(20)


def _production(database: str) -> list[str]:
    command = ["crag", "serve", "--postgres", database, "--workers", "2", "--no-token"]
    return [*command, "--verbose"]


@pytest.fixture(scope="session")
def client(url: str) -> Iterator[Any]:
    with get_sync_client(url=url) as connected:
        yield connected


def _environment(folder: Path, chat: Chat, search: Loopback, receiver: Receiver) -> dict[str, str]:
    ours = ("_KEY", "_TOKEN")
    prefixes = ("CRAG_", "OPENAI_", "OTEL_", "TAVILY_", "SEARXNG_")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(ours) and not name.startswith(prefixes)
    } | {
        "CRAG_INDEX": str(folder / "index"),
        "CRAG_MODEL": "local",
        "CRAG_REFLECTION": "embedded",
        "CRAG_ALLOW_LOOPBACK": "true",
        "OPENAI_BASE_URL": chat.url,
        "OPENAI_API_KEY": KEY,
        "SEARXNG_URL": search.url,
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "CRAG_LOGS": "json",
        "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
    }


def _wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        try:
            if httpx.get(f"{address}/ok").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(f"the server did not start in {_SECONDS_TO_START} seconds: {log.read_text()}")

"""The real LangGraph server on loopback, with the graphs that `langgraph.json` names."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.commands import crag

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "method" / "action.md"
QUESTION = "What happens when every retrieved document scores below the lower threshold?"
"""Answered by `PAGE`."""
_SECONDS_TO_START = 120


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Index one page of the guide, serve the graphs from `folder`, and give their address."""
    langgraph = Path(sys.executable).with_name("langgraph")
    index = folder / "index"
    assert crag("index", PAGE, "--index", index).returncode == 0
    graphs = {name: f"crag.graph.studio:{name}" for name in ("crag", "rag")}
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    keys = ("_KEY", "_TOKEN")
    environment = {name: value for name, value in os.environ.items() if not name.endswith(keys)}
    environment |= {"CRAG_INDEX": str(index), "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    command = [langgraph, "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1"]
    command += ["--port", port, "--n-jobs-per-worker", "8"]
    log = folder / "server.log"
    with (
        log.open("w") as writing,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=writing, stderr=subprocess.STDOUT
        ) as server,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, server, log)
            yield url
        finally:
            server.terminate()
            server.wait(20)


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        try:
            if httpx.get(f"{url}/ok").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    pytest.fail(f"the server did not start in {_SECONDS_TO_START} seconds")

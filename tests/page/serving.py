"""`crag serve` as a user starts it, in a process of its own."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def environment(**variables: str) -> dict[str, str]:
    """Return the environment without anybody's keys, and with `variables`."""
    secret = ("_KEY", "_TOKEN")
    bare = {name: value for name, value in os.environ.items() if not name.endswith(secret)}
    return bare | {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "1"} | variables


def wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    for _ in range(600):
        assert server.poll() is None, "the server stopped"
        try:
            if httpx.get(f"{url}/ok").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError("the server did not start in two minutes")


@contextmanager
def serving_guide(
    folder: Path, *options: str, documents: Path = ROOT / "docs", **variables: str
) -> Iterator[str]:
    """Serve documents, our own guide, as a user would, from another folder, with `crag serve`.

    Yield the address of the page, as it was printed.
    """
    crag = str(Path(sys.executable).with_name("crag"))
    index = [crag, "index", str(documents), "--index", str(folder / "index")]
    subprocess.run(index, check=True, capture_output=True)
    port = free_port()
    command = [crag, "serve", "--index", "index", "--port", str(port), *options]
    log = folder / "serve.log"
    with (
        log.open("wb") as writing,
        subprocess.Popen(
            command, cwd=folder, env=environment(**variables), stdout=writing
        ) as server,
    ):
        try:
            wait_for(f"http://127.0.0.1:{port}", server)
            yield printed(log)["Page"]
        finally:
            server.terminate()
            server.wait(20)


def printed(log: Path) -> dict[str, str]:
    """Return the addresses that `crag serve` printed, by what they are for."""
    for _ in range(100):
        text = log.read_text("utf-8")
        if "Ctrl-C" in text:
            return dict(
                re.findall(r"^(Page|API|MCP|OpenAI|Token|Studio) +(\S+)", text, re.MULTILINE)
            )
        time.sleep(0.05)
    raise AssertionError(text)

"""`crag serve` as a user starts it, in a process of its own."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.commands import CRAG, variables
from tests.serve.serving import free_port

ROOT = Path(__file__).parents[2]


@contextmanager
def serving_guide(folder: Path, documents: Path = ROOT / "docs") -> Iterator[str]:
    """Serve documents, our own guide, as a user would, from another folder, with `crag serve`.

    Yield the address of the page, as it was printed.
    """
    index = [CRAG, "index", documents, "--index", folder / "index"]
    subprocess.run(index, check=True, capture_output=True)
    command, log = [CRAG, "serve", "--index", "index", "--port", str(free_port())], folder / "log"
    with (
        log.open("wb") as writing,
        subprocess.Popen(command, cwd=folder, env=variables({}), stdout=writing) as server,
    ):
        try:
            yield printed(log, server)
        finally:
            server.terminate()
            server.wait(20)


def printed(log: Path, server: "subprocess.Popen[bytes]") -> str:
    """Return the address of the page that `crag serve` prints once it is there."""
    for _ in range(600):
        assert server.poll() is None, "the server stopped"
        text = log.read_text("utf-8")
        if "Ctrl-C" in text:
            return re.findall(r"^Page +(\S+)", text, re.MULTILINE)[0]
        time.sleep(0.2)
    raise AssertionError(text)

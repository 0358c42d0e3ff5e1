"""`crag serve-evaluator`: what it refuses, what it serves, and how it ends."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx

from crag.evaluators import load_evaluator
from tests.commands import crag
from tests.page.serving import environment, free_port, wait_for

CRAG = str(Path(sys.executable).with_name("crag"))
TOKEN = "a-token-of-the-service"  # noqa: S105 - of a test


def test_other_machines_need_a_token() -> None:
    done = crag("serve-evaluator", "--host", "0.0.0.0")  # noqa: S104 - what is refused
    assert done.returncode == 2
    assert "set CRAG_EVALUATOR_TOKEN" in done.stderr
    assert "or listen on 127.0.0.1" in done.stderr


def test_it_serves_the_evaluator_until_it_is_interrupted() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        [CRAG, "serve-evaluator", "--port", str(port)],
        env=environment() | {"CRAG_EVALUATOR_TOKEN": TOKEN},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as server:  # fmt: skip
        wait_for(url, server)
        taken = crag("serve-evaluator", "--port", str(port))
        assert (taken.returncode, f"port {port} is taken" in taken.stderr) == (2, True)
        assert httpx.get(f"{url}/about").status_code == 401
        evaluator = load_evaluator(url, token=TOKEN)
        near, far = evaluator.score("Who wrote it?", ["Ada wrote it.", "Rain fell."])
        assert near > far
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=20)
    assert out.decode().splitlines() == [f"Evaluator  {url}  (default)", "Ctrl-C ends it."]
    assert "Traceback" not in err.decode()

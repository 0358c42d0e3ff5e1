"""The application in two replicas of a real Ray Serve, over one PostgreSQL."""

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.commands import crag, variables
from tests.postgres import postgres
from tests.serve.serving import KEYS, answer_of, asked, free_port

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
PROGRAM = """
import sys, time
import ray
from ray import serve
from crag.serve.ray import Crag
ray.init(address="local", num_cpus=2, include_dashboard=False, _node_ip_address="127.0.0.1")
serve.start(http_options={"host": "127.0.0.1", "port": int(sys.argv[1])})
options = {"num_replicas": 2, "ray_actor_options": {"num_cpus": 0.5}}
serve.run(Crag.options(**options).bind())
time.sleep(600)
"""


def test_two_replicas_serve_the_conversations_of_one_database(tmp_path: Path) -> None:
    (tmp_path / "tea.md").write_text("# Tea\n\nGreen tea is brewed for three minutes.\n")
    index, port = str(tmp_path / "index"), free_port()
    done = crag("index", str(tmp_path / "tea.md"), environment={"CRAG_INDEX": index})
    assert done.returncode == 0, done.stderr
    with postgres() as database, (tmp_path / "log").open("wb") as log:
        environment = variables({
            "CRAG_INDEX": index,
            "CRAG_SERVE_DATABASE": database,
            "CRAG_SERVE_KEYS": ",".join(f"{name}={key}" for name, key in KEYS.items()),
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        })  # fmt: skip
        command = [sys.executable, "-c", PROGRAM, str(port)]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=log, stderr=log
        ) as running:
            try:
                url = f"http://127.0.0.1:{port}"
                wait_for(url, running, tmp_path / "log")
                use(url)
            finally:
                running.terminate()
                running.wait(60)


def use(url: str) -> None:
    with (
        httpx.Client(base_url=url, headers={"x-api-key": KEYS["ada"]}, timeout=60) as ada,
        httpx.Client(base_url=url, headers={"x-api-key": KEYS["bob"]}) as bob,
    ):
        told = asked(ada, "How long is green tea brewed?")
        thread = told[0][1]
        assert "three minutes" in answer_of(told)
        for _ in range(5):  # By either replica.
            assert asked(ada, "And black tea?", thread=thread)[-1][0] == "end"
            assert bob.get(f"/api/threads/{thread}").status_code == 404
        assert len(ada.get(f"/api/threads/{thread}").json()) == 6
        assert httpx.get(f"{url}/api/threads").status_code == 401
        assert httpx.get(url).headers["content-security-policy"]


def wait_for(url: str, running: "subprocess.Popen[bytes]", log: Path) -> None:
    for _ in range(900):
        assert running.poll() is None, log.read_text()
        with suppress(httpx.TransportError):
            if httpx.get(f"{url}/ok").status_code == 200:
                return
        time.sleep(0.2)
    raise AssertionError(log.read_text())

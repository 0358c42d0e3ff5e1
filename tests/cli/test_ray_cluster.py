"""Indexing and batch answering on clusters of 1, 2 and 4 nodes: the results of one process."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import chromadb
import numpy as np
import psutil
import pytest

from crag.index.backends import open_backend
from crag.runtime.ray_cluster import load_ray
from tests.commands import CRAG, crag_process, variables
from tests.loopback import Loopback, serving
from tests.openai_replies import completion
from tests.postgres import postgres

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves sockets to the collector.
]
RECORDS, FILES = 2400, 40
QUESTIONS = [f"Who built bridge {number}?" for number in range(60)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files, of which two are the same and one cannot be read, and one file of many records."""
    folder = tmp_path_factory.mktemp("texts")
    for number in range(FILES):
        text = f"# Bridge {number}\n\nMason {number % 7} built bridge {number}.\n"
        (folder / f"bridge-{number:02}.md").write_text(text)
    (folder / "copy.md").write_text((folder / "bridge-00.md").read_text())
    (folder / "damaged.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    lines = [{"id": str(n), "text": f"Fact {n}: river {n} is {n} km long."} for n in range(RECORDS)]
    (folder / "facts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


@pytest.fixture(scope="module")
def alone(texts: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The index and the report of one process."""
    place = tmp_path_factory.mktemp("alone") / "index"
    return place, run("index", texts, "--index", place)


@contextmanager
def nodes(number: int) -> Iterator[str]:
    """Start a cluster of several nodes with one core each, and yield its address."""
    load_ray()
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
        patched.setenv("OPENAI_API_KEY", "none")  # Keys are those of the workers' machines.
        started = Cluster(
            initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
        )
        try:
            for _ in range(number - 1):
                started.add_node(num_cpus=1)
            yield started.address
        finally:
            started.shutdown()


@pytest.fixture(scope="module", params=[1, 2, 4])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    with nodes(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def two() -> Iterator[str]:
    with nodes(2) as found:
        yield found


def run(*arguments: object, environment: Mapping[str, str] = {}) -> dict[str, Any]:
    done = crag_process(*map(str, arguments), "--json", environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def content(place: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return text and metadata, and the vector, of every chunk."""
    (collection,) = chromadb.PersistentClient(str(place)).list_collections()
    found = collection.get(include=["embeddings", "metadatas", "documents"])
    assert found["embeddings"] is not None
    assert found["metadatas"] is not None
    assert found["documents"] is not None
    told = zip(found["documents"], map(dict, found["metadatas"]), strict=True)
    vectors = map(np.asarray, found["embeddings"])
    ids = found["ids"]
    return dict(zip(ids, told, strict=True)), dict(zip(ids, vectors, strict=True))


def same_index(one: Path, other: Path) -> None:
    (ours, near), (theirs, there) = content(one), content(other)
    assert ours == theirs
    assert max(float(np.abs(near[name] - there[name]).max()) for name in near) < 1e-4


def told(report: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name != "seconds"}


def workers() -> list[psutil.Process]:
    """Return the workers at work of the clusters that this process started."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # It may have ended.
            name = "".join(process.cmdline()[:1])
            if name.startswith("ray::") and "IDLE" not in name:
                found.append(process)
    return found


def kill_a_worker(killed: list[int], over: threading.Event) -> None:
    """Kill the first worker that works, a moment after it began."""
    while not killed and not over.wait(0.02):
        for worker in workers()[:1]:
            over.wait(0.3)
            with suppress(psutil.Error):
                worker.kill()
                killed.append(worker.pid)


@contextmanager
def a_worker_is_killed() -> Iterator[None]:
    killed: list[int] = []
    over = threading.Event()
    thread = threading.Thread(target=kill_a_worker, args=(killed, over))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert len(killed) == 1


def test_the_index_is_that_of_one_process(
    address: str, texts: Path, alone: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    place, report = alone
    mine = tmp_path / "index"
    assert told(run("index", texts, "--index", mine, "--ray", address)) == told(report)
    same_index(mine, place)
    again = run("index", texts, "--index", mine, "--ray", address)
    assert (again["unchanged"], again["chunks"]) == (report["added"], 0)


def test_a_store_behind_a_server_takes_it(
    two: str, texts: Path, alone: tuple[Path, dict[str, Any]]
) -> None:
    with postgres() as url:
        assert told(run("index", texts, "--index", url, "--ray", two)) == told(alone[1])
        stored = {one.id: one.metadata for one in open_backend(url).stored()}
    assert stored == {name: known for name, (_, known) in content(alone[0])[0].items()}


def test_a_lost_worker_costs_no_block(
    two: str, texts: Path, alone: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    with a_worker_is_killed():
        report = run("index", texts, "--index", tmp_path / "index", "--ray", two)
    assert told(report) == told(alone[1])
    same_index(tmp_path / "index", alone[0])


def test_a_killed_driver_goes_on(
    two: str, texts: Path, alone: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    place = tmp_path / "index"
    command = ["index", texts, "--index", place, "--ray", two]
    killed_when(lambda: bool(list(place.glob("*.sqlite3"))) and _size(place) > 2**20, *command)
    report = run(*command)
    assert 0 < report["unchanged"] < alone[1]["added"]
    assert report["added"] + report["unchanged"] == alone[1]["added"]
    same_index(place, alone[0])


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def killed_when(reached: Any, *command: object, environment: Mapping[str, str] = {}) -> None:
    """Start a command, and kill it once something is so."""
    process = subprocess.Popen(
        [CRAG, *map(str, command), "--json"], env=variables(environment),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None and not reached():
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serving(completion("Mason 1 built it [1].")) as running:
        yield running


def asking(server: Loopback, folder: Path, index: Path) -> tuple[list[object], dict[str, str]]:
    lines = [json.dumps({"question": question}) for question in QUESTIONS]
    (folder / "questions.jsonl").write_text("\n".join(lines))
    command = ["batch", folder / "questions.jsonl", "--index", index, "--set", "upper=-100"]
    environment = {
        "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none", "CRAG_MODEL": "m",
    }  # fmt: skip
    return command, environment


def answers(path: Path) -> dict[str, Any]:
    rows = map(json.loads, path.read_text().splitlines())
    found = {row["id"]: {**row, "seconds": 0} for row in rows}
    assert len(found) == len(path.read_text().splitlines())
    return found


def test_answers_are_those_of_one_process(
    address: str, alone: tuple[Path, dict[str, Any]], server: Loopback, tmp_path: Path
) -> None:
    command, environment = asking(server, tmp_path, alone[0])
    run(*command, "--output", tmp_path / "here.jsonl", environment=environment)
    ended = run(
        *command, "--output", tmp_path / "ray.jsonl", "--ray", address, environment=environment
    )
    assert ended["statuses"] == {"answered": len(QUESTIONS)}
    assert answers(tmp_path / "ray.jsonl") == answers(tmp_path / "here.jsonl")


def test_a_lost_worker_costs_no_answer(
    two: str, alone: tuple[Path, dict[str, Any]], server: Loopback, tmp_path: Path
) -> None:
    server.seconds = 0.1
    command, environment = asking(server, tmp_path, alone[0])
    output = tmp_path / "ray.jsonl"
    with a_worker_is_killed():
        ended = run(*command, "--output", output, "--ray", two, environment=environment)
    assert ended["statuses"] == {"answered": len(QUESTIONS)}
    assert len(answers(output)) == len(QUESTIONS)


def test_a_killed_driver_asks_nothing_twice(
    two: str, alone: tuple[Path, dict[str, Any]], server: Loopback, tmp_path: Path
) -> None:
    server.seconds = 0.05
    command, environment = asking(server, tmp_path, alone[0])
    command += ["--output", tmp_path / "ray.jsonl", "--ray", two]
    output = tmp_path / "ray.jsonl"
    lines = lambda: output.exists() and output.read_bytes().count(b"\n")  # noqa: E731 - once
    killed_when(lambda: lines() >= 10, *command, environment=environment)
    acknowledged = output.read_bytes()
    acknowledged = acknowledged[: acknowledged.rindex(b"\n") + 1]
    ended = run(*command, environment=environment)
    assert ended["resumed"] == acknowledged.count(b"\n")
    assert output.read_bytes().startswith(acknowledged)
    assert len(answers(output)) == len(QUESTIONS)
    # What was on its way at the kill is asked again: at most four questions of two workers.
    assert len(server.requests) <= len(QUESTIONS) + 4

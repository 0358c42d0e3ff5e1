"""`--ray` with a real local cluster: the index, and the answers, of one process."""

import json
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from crag.index import open_index
from crag.models.encoder import packaged_encoder
from crag.runtime.ray_cluster import spread
from tests.commands import crag
from tests.loopback import completion, serving

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.filterwarnings("ignore"),  # Ray's own, and sockets that it leaves to the collector.
]
QUESTIONS = [f"Who built bridge {number}?" for number in range(12)]


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers find these tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]), prepend=os.pathsep)


def ending(flag: Path) -> Callable[[int], list[int]]:
    def end(number: int) -> list[int]:
        if number == 3 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [number]

    return end


def test_a_worker_that_dies_loses_nothing(tmp_path: Path) -> None:
    assert sorted(spread(range(9), partial(ending, tmp_path / "died"), "local")) == list(range(9))
    assert (tmp_path / "died").exists()


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files, of which two are the same and one cannot be read, and one file of records."""
    folder = tmp_path_factory.mktemp("texts")
    for number in range(20):
        text = f"# Bridge {number}\n\nMason {number % 7} built bridge {number}.\n"
        (folder / f"bridge-{number:02}.md").write_text(text)
    (folder / "copy.md").write_text((folder / "bridge-00.md").read_text())
    (folder / "damaged.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    lines = [{"id": str(n), "text": f"Fact {n}: river {n} is {n} km long."} for n in range(600)]
    (folder / "facts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


def told(*arguments: object, **environment: str) -> dict[str, Any]:
    done = crag(*map(str, arguments), "--json", environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: value for name, value in json.loads(done.stdout).items() if name != "seconds"}


def content(place: Path) -> dict[str, dict[str, Any]]:
    with open_index(str(place), packaged_encoder()) as index:
        return {chunk.id or "": chunk.metadata for chunk in index.stored()}


def test_the_index_is_that_of_one_process(texts: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    expected = told("index", texts, "--index", here)
    assert told("index", texts, "--index", there, "--ray", "local") == expected
    assert content(there) == content(here)
    again = told("index", texts, "--index", there, "--ray", "local")
    assert (again["unchanged"], again["added"], again["chunks"]) == (expected["added"], 0, 0)


def test_the_answers_are_those_of_one_process(texts: Path, tmp_path: Path) -> None:
    told("index", texts, "--index", tmp_path / "index")
    asked = tmp_path / "questions.jsonl"
    asked.write_text("\n".join(json.dumps({"question": one}) for one in QUESTIONS))
    with serving(completion("Mason 1 built it [1].")) as server:
        variables = {
            "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "none", "CRAG_MODEL": "m",
        }  # fmt: skip
        correct = ("--set", "upper=-100", "--set", "lower=-100")
        command = ["batch", asked, "--index", tmp_path / "index", *correct]
        expected = told(*command, "--output", tmp_path / "here.jsonl", **variables)
        ended = told(*command, "--output", tmp_path / "there.jsonl", "--ray", "local", **variables)
    assert ended | {"output": ""} == expected | {"output": ""}
    here, there = (
        {row["id"]: row | {"seconds": 0} for row in map(json.loads, lines.splitlines())}
        for lines in ((tmp_path / f"{name}.jsonl").read_text() for name in ("here", "there"))
    )
    assert there == here

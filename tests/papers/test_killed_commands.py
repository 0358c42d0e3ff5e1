"""The four commands that make and train Self-RAG are killed like a machine that loses its power."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from crag.papers.loading.records import ledger_of, read_records, write_records
from crag.papers.self_rag.critique_cases import LabelledCase
from crag.papers.self_rag.generator_data import Pair, ReflectiveRecord
from crag.papers.training import WORK
from tests.commands import CRAG, crag_process, variables
from tests.loopback import serving
from tests.openai_replies import completion
from tests.papers.self_rag.test_language_models import CASES
from tests.reflective import articles, tiny_base, written

pytestmark = pytest.mark.nightly
KILLS = 10
CORES = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
PAIRS = [
    Pair(instruction=f"{case.instruction} {place}", output=f"It was built. {'So it stands. ' * 4}")
    for place in range(12)
    for case in CASES
]


def run(*arguments: object, environment: Mapping[str, str] = {}) -> dict[str, Any]:
    """Run a command to its end."""
    done = crag_process(*map(str, arguments), "--json", environment=CORES | dict(environment))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def kill(
    *arguments: object,
    begun: Path,
    seconds: float = 0.2,
    times: int = KILLS,
    environment: Mapping[str, str] = {},
) -> None:
    """Start a command several times; kill it at random within `seconds` after `begun` has grown."""
    draw = random.Random(7)  # noqa: S311 - moments, no secret
    for _ in range(times):
        before = _size(begun)
        process = subprocess.Popen(
            [CRAG, *map(str, arguments), "--json"],
            env=variables(CORES | dict(environment)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and _size(begun) == before:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, seconds))
        assert process.poll() is None, "it ended before it could be killed"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _size(place: Path) -> int:
    """Return what grows as work goes on: a file's length, or the steps that a folder holds."""
    if place.is_dir():
        steps = (path.name.rpartition("-")[2] for path in place.glob("checkpoint-*"))
        return max((int(step) for step in steps if step.isdigit()), default=-1)
    return place.stat().st_size if place.exists() else -1


def test_labelling_by_a_chat_model(tmp_path: Path) -> None:
    data = written(tmp_path / "truths.jsonl", articles(80))
    common = ["reflect-data", "critic", data, "--each", 30, "--chat", "--concurrency", 4]
    with serving(completion('{"label": "Relevant"}')) as server:
        server.seconds = 0.02
        environment = {"OPENAI_BASE_URL": f"{server.url}/v1", "CRAG_MODEL": "labeller"}
        whole, output = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
        expected = run(*common, "--output", whole, environment=environment)
        asked = len(server.requests)
        arguments = [*common, "--output", output]
        kill(*arguments, begun=ledger_of(output), environment=environment)
        told = run(*arguments, environment=environment)
        again = len(server.requests) - 2 * asked
    assert read_records(output, LabelledCase) == read_records(whole, LabelledCase)
    assert {k: told[k] for k in ("cases", "rejected")} == {
        k: expected[k] for k in ("cases", "rejected")
    }
    # What was on its way at a kill is asked again: at most one batch of 32 cases.
    assert again <= 32 * KILLS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, cases, pairs, an index, and a critic."""
    folder = tmp_path_factory.mktemp("killed")
    tiny_base(folder / "base")
    write_records(folder / "cases.jsonl", CASES)
    write_records(folder / "pairs.jsonl", PAIRS)
    texts = folder / "texts"
    texts.mkdir()
    (texts / "kettle.md").write_text("# Kettle\n\nThe kettle of Peru was built in 1700.\n")
    (texts / "river.md").write_text("# River\n\nRain fell on the river. So it stands.\n")
    run("index", texts, "--index", folder / "index")
    run("train", "critic", folder / "cases.jsonl", "--output", folder / "critic", *recipe(folder))
    return folder


def recipe(folder: Path, **changes: object) -> Sequence[str]:
    values = {
        "base": folder / "base", "batch_size": 4, "accumulation": 1, "epochs": 12,
        "max_length": 256, "learning_rate": 3e-3, "save_steps": 3,
    }  # fmt: skip
    settings = (values | changes).items()
    return [word for name, value in settings for word in ("--set", f"{name}={value}")]


def same_weights(one: Path, other: Path) -> None:
    ours, theirs = (load_file(place / "model.safetensors") for place in (one, other))
    assert ours.keys() == theirs.keys()
    assert all((ours[name] == theirs[name]).all() for name in theirs)
    assert not list(one.glob(".*"))


def test_training_a_critic(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "killed"
    command = ["train", "critic", folder / "cases.jsonl", "--output", output, *recipe(folder)]
    kill(*command, begun=output / WORK)
    told = run(*command)
    same_weights(output, folder / "critic")
    expected = json.loads((folder / "critic" / "card.json").read_text())
    for name in ("metrics", "confusion", "data", "recipe"):
        assert told["card"][name] == expected[name]


@pytest.fixture(scope="module")
def records(folder: Path) -> Path:
    """Records of a run that nothing killed."""
    output = folder / "records.jsonl"
    run(*making(folder, output))
    return output


def making(folder: Path, output: Path) -> Iterator[object]:
    yield from ("reflect-data", "generator", folder / "pairs.jsonl", "--output", output)
    yield from ("--critic", folder / "critic", "--index", folder / "index")
    yield from ("--set", "keep_without_retrieval=1")


def test_making_a_generators_data(folder: Path, records: Path, tmp_path: Path) -> None:
    output = tmp_path / "killed.jsonl"
    command = [*making(folder, output)]
    kill(*command, begun=ledger_of(output))
    run(*command)
    assert output.read_bytes() == records.read_bytes()
    assert len(read_records(output, ReflectiveRecord)) == len(PAIRS)
    assert not ledger_of(output).exists()

"""A training is killed like a machine that loses its power, and goes on."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from crag.models.model_card import CARD
from crag.papers.files import write_records
from crag.papers.training import WORK
from tests.commands import CRAG, crag_process, variables
from tests.papers.self_rag.test_language_models import CASES
from tests.reflective import tiny_base

pytestmark = pytest.mark.nightly
KILLS = 10
CORES = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def run(*arguments: object) -> dict[str, Any]:
    """Run a command to its end, and return the card of the output, its last argument."""
    done = crag_process(*map(str, arguments), environment=CORES)
    assert done.returncode == 0, done.stderr
    return json.loads(Path(str(arguments[-1]), CARD).read_text())  # type: ignore[no-any-return]


def kill(*arguments: object, begun: Path) -> None:
    """Start a command several times; kill it at random soon after `begun` has grown."""
    draw = random.Random(7)  # noqa: S311 - moments, no secret
    for _ in range(KILLS):
        before = _size(begun)
        process = subprocess.Popen(
            [CRAG, *map(str, arguments)],
            env=variables(CORES),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and _size(begun) == before:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.2))
        assert process.poll() is None, "it ended before it could be killed"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def _size(place: Path) -> int:
    """Return what grows as work goes on: the steps that a folder holds."""
    steps = (path.name.rpartition("-")[2] for path in place.rglob("checkpoint-*"))
    return max((int(step) for step in steps if step.isdigit()), default=-1)


def recipe(folder: Path) -> Sequence[str]:
    values = {
        "base": folder / "base", "batch_size": 4, "accumulation": 1, "epochs": 12,
        "max_length": 256, "learning_rate": 3e-3, "save_steps": 3,
    }  # fmt: skip
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


def same_weights(one: Path, other: Path) -> None:
    ours, theirs = (load_file(place / "model.safetensors") for place in (one, other))
    assert ours.keys() == theirs.keys()
    assert all((ours[name] == theirs[name]).all() for name in theirs)
    assert not list(one.glob(".*"))


def test_training_a_critic(tmp_path: Path) -> None:
    tiny_base(tmp_path / "base")
    write_records(tmp_path / "cases.jsonl", CASES)
    whole, output = tmp_path / "whole", tmp_path / "killed"
    command = ["train", "critic", tmp_path / "cases.jsonl", *recipe(tmp_path), "--output"]
    expected = run(*command, whole)
    kill(*command, output, begun=output / WORK)
    told = run(*command, output)
    same_weights(output, whole)
    for name in ("data", "recipe"):
        assert told[name] == expected[name]
    assert told["metrics"]["relevance"] == expected["metrics"]["relevance"]

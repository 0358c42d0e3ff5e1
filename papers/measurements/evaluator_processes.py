"""Growth with the number of texts, and the cost of starting `crag ask`: each in a new process."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluator_timing import MEBIBYTE, Asked, alone, questions, table

SIZES = (1, 10, 100, 1000)
ROUNDS = 5
DOCS = Path(__file__).parents[2] / "docs"
QUESTION = "What is a knowledge strip?"
TORCH = "importing torch and transformers alone"
_KIBIBYTES = 1024 if sys.platform != "darwin" else MEBIBYTE  # What ru_maxrss counts.


class Cost(NamedTuple):
    """What a process took."""

    wall: float
    cpu: float
    memory: float
    """Resident at most, in MiB."""


def growth(asked: Asked) -> str:
    """Show time and memory for more and more texts of one question."""
    sizes = SIZES[:-1] if asked.quick else SIZES
    rows = []
    for size in sizes:
        seconds, before, after = alone(grown, asked, size)
        rate = f"{1000 * seconds / size:.1f} ms"
        rows.append([f"{size:,}", f"{seconds:.2f}", rate, f"{before:.0f}", f"{after - before:.0f}"])
    heads = ["texts", "seconds", "per text", "MiB with one text scored", "MiB more at most"]
    return f"Growth: texts of one question, embedded evaluator.\n\n{table(heads, rows)}"


def grown(asked: Asked, size: int) -> tuple[float, float, float]:
    """Return the seconds for `size` texts, and the peak of memory in MiB before and after."""
    from crag.evaluators import load_evaluator

    asking = questions(asked.data)
    texts = [text for _, found in asking for text in found][:size]
    evaluator = load_evaluator(str(asked.default))
    evaluator.score(asking[0][0], texts[:1])
    before, started = peak(), time.perf_counter()
    evaluator.score(asking[0][0], texts)
    return time.perf_counter() - started, before, peak()


def peak() -> float:
    """Return this process's peak of resident memory in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIBIBYTES / MEBIBYTE


def startup(asked: Asked) -> str:
    """Show what `crag ask` costs from the first instruction to the last."""
    with tempfile.TemporaryDirectory() as folder:
        index = str(Path(folder, "index"))
        crag = [sys.executable, "-c", "from crag.papers.commands import main; main()"]
        started([*crag, "index", str(DOCS), "--index", index], {}, folder)
        ask = [*crag, "ask", QUESTION, "--index", index]
        commands: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
            "`crag ask`, default": (ask, {"CRAG_EVALUATOR": str(asked.default)}),
            "`crag ask`, cosine": (ask, {"CRAG_EVALUATOR": "cosine"}),
            TORCH: ([sys.executable, "-c", "import torch, transformers"], {}),
        }
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(1 if asked.quick else ROUNDS):
            for name, command in commands.items():
                costs[name].append(started(*command, folder))
    rows = [[name, *(f"{statistics.median(column):.2f}" for column in zip(*found, strict=True))]
            for name, found in costs.items()]  # fmt: skip
    heads = ["", "wall seconds", "CPU seconds", "peak MiB"]
    return f"Start-up: median of {len(costs[TORCH])}, in turns.\n\n{table(heads, rows)}"


def started(command: Sequence[str], variables: Mapping[str, str], folder: str) -> Cost:
    """Run a command in `folder`, without keys, and return what it took."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CRAG_", "OPENAI_", "TAVILY_"))
    }
    begun = time.perf_counter()
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=folder, env=kept | dict(variables), stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(time.perf_counter() - begun, cpu, usage.ru_maxrss * _KIBIBYTES / MEBIBYTE)

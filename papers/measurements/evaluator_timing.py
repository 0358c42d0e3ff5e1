"""How the speed benchmark asks, takes turns and shows what it measured."""

import json
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
CORES = 2
MEBIBYTE = 1 << 20
_FEWEST = 3
"""Rounds of each comparison."""


class Asked(NamedTuple):
    """What the command line asks for."""

    data: Path
    default: Path
    """Folder of the embedded evaluator."""
    shape: str
    seconds: float
    """For each comparison, more or less."""
    quick: bool


def hold_to_cores() -> None:
    """Keep this process, and those it starts, on two cores."""
    os.environ["OMP_NUM_THREADS"] = str(CORES)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def alone(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as executor:
        return executor.submit(function, *args, **kwargs).result()


def questions(data: Path) -> list[tuple[str, list[str]]]:
    """Return the Biography questions, each with its ten titled texts."""
    groups: dict[str, list[str]] = {}
    for row in (data / "evaluator/dev_bio.jsonl").read_text(encoding="utf-8").splitlines():
        found = json.loads(row)
        groups.setdefault(found["question"], []).append(f"{found['title']} // {found['text']}")
    return list(groups.items())


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def alternated(ways: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Return the median seconds of each way, taken in turns for `seconds`, after one to warm up."""
    for call in ways.values():
        call()
    rounds: list[dict[str, float]] = []
    ends = time.perf_counter() + seconds
    while len(rounds) < _FEWEST or time.perf_counter() < ends:
        rounds.append({name: timed(call) for name, call in ways.items()})
    return {name: statistics.median(found[name] for found in rounds) for name in ways}


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)

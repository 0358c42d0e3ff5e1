"""Take turns, time, and measure memory: what measurements of speed have in common."""

import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
CORES = 2
MEBIBYTE = 1 << 20
MAXRSS = 1024 if sys.platform != "darwin" else 1
"""Bytes of one unit of `ru_maxrss`."""
_FEWEST = 3
"""Rounds of each comparison."""


def hold_to_cores() -> None:
    """Keep this process, and those it starts, on two cores."""
    os.environ["OMP_NUM_THREADS"] = str(CORES)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def alone(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Call a function in a fresh process, so that its peak of memory is its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as executor:
        return executor.submit(function, *args, **kwargs).result()


def peak_memory() -> float:
    """Return this process's peak of resident memory in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS / MEBIBYTE


def processor_time() -> float:
    """Return the seconds of processor time of this process and of those it started, once ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def alternated(
    ways: Mapping[str, Callable[[], object]], seconds: float = 0, rounds: int = _FEWEST
) -> dict[str, float]:
    """Return the median seconds of each way, after a call of each to warm up.

    They take turns for `rounds`, and for as many more as fit in `seconds`.
    """
    for call in ways.values():
        call()
    taken: list[dict[str, float]] = []
    ends = time.perf_counter() + seconds
    while len(taken) < rounds or time.perf_counter() < ends:
        taken.append({name: timed(call) for name, call in ways.items()})
    return {name: statistics.median(found[name] for found in taken) for name in ways}

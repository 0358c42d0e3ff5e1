"""Work on Ray: tasks in the processes of a cluster, or of one that starts on this machine.

A worker is a process that keeps what it has loaded between tasks. If it dies, Ray runs its task
again in another one. On a cluster each machine needs this package, its models, and keys in its own
environment; paths must be the same on all.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from crag.errors import CragError
from crag.extras import require
from crag.runtime.attempt import Attempt

RETRIES = 5
"""How often one task may lose its worker."""
LOCAL = "local"
"""In the place of an address: a cluster of this machine alone, for as long as the command runs."""
_AHEAD = 2
"""Tasks submitted per worker, so that no worker waits for the next one."""
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def load_ray() -> Any:
    """Import Ray, which then reports no usage and leaves the accelerators of a machine visible.

    Raises:
        MissingPackageError: it is not installed.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # No usage reports.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    require("ray", "--ray", "ray")
    import ray

    return ray


@contextmanager
def cluster(ray: Any, workers: int, address: str | None = None) -> Iterator[None]:
    """Use the cluster at `address`, or that RAY_ADDRESS names, or start one here for the block.

    One that is started has as many `workers`; 0 stands for the cores of this machine.

    Raises:
        CragError: there is no cluster at the address, or none can be started.
    """
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    named = address or os.environ.get("RAY_ADDRESS")
    if named and named != LOCAL:
        options["address"] = named
    else:
        options |= {"address": LOCAL, "include_dashboard": False}
        options |= {"num_cpus": workers} if workers else {}
        options |= {"_node_ip_address": "127.0.0.1"}
    _start(ray, options)
    try:
        yield
    finally:
        ray.shutdown()


def _start(ray: Any, options: Mapping[str, Any]) -> None:
    """Connect, or start a cluster here, twice if need be.

    Ray waits half a minute for its own processes, which is short on a busy machine.
    """
    problem: Exception | None = None
    for _ in range(2 if options["address"] == LOCAL else 1):
        with Attempt("Ray") as attempt:  # It raises errors of any kind, `Exception` among them.
            ray.init(**options)
            return
        ray.shutdown()
        problem = attempt.error
    if options["address"] == LOCAL:
        message = f"Ray does not start here: {problem} Try again when the machine is less busy"
    else:
        message = (
            f"no Ray cluster at {options['address']}: {problem}. Start one with "
            f"`ray start --head`, or work on this machine with --ray {LOCAL}"
        )
    raise CragError(message)


def cores(ray: Any) -> int:
    """Return how many cores the cluster has, at least 1."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def on_workers(  # noqa: PLR0913 - how tasks are run
    ray: Any,
    task: Callable[[_Item], _Result],
    items: Iterable[_Item],
    workers: int,
    *,
    named: Callable[[_Item], str],
    in_order: bool = False,
    **options: Any,
) -> Iterator[tuple[_Item, _Result]]:
    """Yield each item with the result of its task, as they are ready, or in their order.

    Items are taken when there is a worker for them, so that they can be endless, and whoever makes
    them can stop. `options` are those of `ray.remote`. A `CragError` of a task is raised as it is.

    Raises:
        CragError: an item, which `named` names, ended several workers.
    """
    run = ray.remote(max_retries=RETRIES, **options)(_as_sent)
    left = iter(items)
    pending: dict[Any, _Item] = {}
    while True:
        free = _AHEAD * workers - len(pending)
        pending |= {run.remote(task, item): item for item in islice(left, free)}
        if not pending:
            return
        awaited = list(islice(pending, 1)) if in_order else list(pending)
        (ready,), _ = ray.wait(awaited, num_returns=1)
        item = pending.pop(ready)
        yield item, _result(ray, ready, named(item))


def _as_sent(task: Callable[[_Item], _Result], item: _Item) -> _Result:
    try:
        return task(item)
    except CragError as error:
        raise CragError(str(error)) from None  # One that can be sent to another process.


def _result(ray: Any, reference: Any, name: str) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, CragError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        message = (
            f"{name} ended {RETRIES + 1} Ray workers or could not be sent to one ({error}). What "
            "is finished is kept: run again, or without --ray to see more"
        )
        raise CragError(message) from error

"""Ray Data: items pass through actors on all cores of a cluster, or of one that starts here.

An actor keeps what it has loaded from item to item; one that dies is started again. On a cluster
each machine needs this package, its models, and keys in its own environment; paths must be the same
on all.
"""

import logging
import os
import socket
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from crag.errors import CragError
from crag.extras import require
from crag.plain import first_line

Step = Callable[[], Callable[[Any], Iterable[Any]]]
"""Makes, once in each actor, what takes an item and returns items; both are pickled."""
_VARIABLES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # The GPUs of a machine stay visible.
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # Its warnings about Ray Data's own actors help nobody.
}


def spread(
    items: Iterable[Any], step: Step, address: str, *, in_order: bool = False
) -> Generator[Any]:
    """Yield what a step makes of the items, as they are ready or in their order.

    `address` is that of a cluster, or ``local`` for one of this machine, until all is done.

    Raises:
        CragError: the step raised it; or there is no cluster, or its workers failed again and
            again.
        MissingPackageError: ray is not installed.
    """
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)
    require("ray", "--ray", "ray", "pyarrow", "pandas")
    from ray import data
    from ray.exceptions import RayError

    pickle: Any = import_module("ray.cloudpickle")  # It has no types.
    rows = [{"item": pickle.dumps(item)} for item in items]
    with _cluster(address):
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        context = data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = in_order
        dataset = data.from_items(rows, override_num_blocks=len(rows) or None).flat_map(
            _Actor, fn_constructor_args=(pickle.dumps(step), Path.cwd()),
            compute=data.ActorPoolStrategy(),
        )  # fmt: skip
        try:
            for row in dataset.iter_rows() if rows else ():
                made = pickle.loads(row["item"])
                if isinstance(made, CragError):
                    raise made
                yield made
        except RayError as error:
            kept = "What is finished is kept: run again, or without --ray to see more"
            raise CragError(f"Ray's workers failed ({first_line(error)}). {kept}") from error


class _Actor:
    """Passes pickled items through a step; a `CragError` is an item too, which ends the run."""

    def __init__(self, step: bytes, folder: Path) -> None:
        # Paths are relative to it, and the keys of its `.env` are read where the step is unpickled;
        # another machine may not have it.
        with suppress(OSError):
            os.chdir(folder)
        self._step = step
        self._take: Any = None

    def __call__(self, row: Mapping[str, bytes]) -> list[dict[str, bytes]]:
        pickle: Any = import_module("ray.cloudpickle")
        item, made = pickle.loads(row["item"]), []
        try:
            self._take = self._take or pickle.loads(self._step)()
            made.extend(self._take(item))
        except CragError as error:
            made.append(CragError(str(error)))  # One that can be sent to another process.
        return [{"item": pickle.dumps(one)} for one in made]


def _cluster(address: str) -> AbstractContextManager[Any]:
    """Connect until the end of the block, or start a cluster here."""
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    host, _, port = address.partition(":")
    try:
        if port.isdecimal():  # Ray would try for minutes.
            socket.create_connection((host, int(port)), timeout=10).close()
        cluster: AbstractContextManager[Any] = ray.init(address=address, **options)
    except Exception as error:
        ray.shutdown()
        fix = "start one with `ray start --head`, or work on this machine: --ray local"
        raise CragError(f"no Ray cluster at {address} ({error}): {fix}") from error
    return cluster

"""Measure how long the nodes of a run take.

The state holds no times, so that equal runs leave equal states; who watches a run measures it.
"""

import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.constants import START


class Stopwatch(BaseCallbackHandler):
    """A callback that sums the seconds of each node."""

    run_inline = True  # It takes microseconds, and the loop's threads may be over at an error.

    def __init__(self) -> None:
        self._started: dict[UUID, tuple[str, float]] = {}
        self._spent: dict[str, float] = {}

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by node, such as ``web:search``, in the order in which nodes ended."""
        outer = {name.partition(":")[0] for name in self._spent if ":" in name}
        return {name: round(spent, 3) for name, spent in self._spent.items() if name not in outer}

    def on_chain_start(
        self,
        serialized: dict[str, Any],
        inputs: dict[str, Any],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Start the watch of a node; what runs within it is not measured."""
        del serialized, inputs
        told = metadata or {}
        node = told.get("langgraph_node", START)
        if node != START and kwargs.get("name") == node:
            path = str(told.get("langgraph_checkpoint_ns", "")).split("|")
            name = ":".join(part.partition(":")[0] for part in path)
            self._started[run_id] = (name, time.perf_counter())

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Stop it: a node that waits for a human ends so too."""
        self.on_chain_end(error, run_id=run_id)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """Stop it."""
        del outputs
        if found := self._started.pop(run_id, None):
            name, start = found
            self._spent[name] = self._spent.get(name, 0.0) + time.perf_counter() - start

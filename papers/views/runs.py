"""Walk a graph: run it once, and record the update of each node."""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from langgraph.graph.state import CompiledStateGraph

from crag.api import values_of
from crag.papers.settings import PaperSettings
from crag.papers.views.updates import written
from crag.settings import Settings
from crag.state import State

Place = tuple[tuple[int, int, str], ...]
"""Step, order and name of a task, preceded by those of its parent graph."""


class Step(NamedTuple):
    """The update of one node."""

    node: str
    """Its name; in a subgraph with the subgraph's name first, as in ``web:search``."""
    update: Mapping[str, Any]


class Walk:
    """One run of a graph, node by node; a notebook shows it as a list of its steps."""

    def __init__(self, steps: list[Step], state: State) -> None:
        self.steps = steps
        self.state = state

    @property
    def nodes(self) -> list[str]:
        """The nodes that ran, without duplicates, in order; a subgraph precedes its nodes."""
        names = (name for step in self.steps for name in (step.node.partition(":")[0], step.node))
        return list(dict.fromkeys(names))

    def __repr__(self) -> str:
        return " → ".join(step.node for step in self.steps)

    def _repr_markdown_(self) -> str:
        shown = set[str]()
        lines: list[str] = []
        for number, step in enumerate(self.steps, start=1):
            new = [part for part in written(step.update) if part not in shown]
            shown.update(new)
            lines += [f"**{number} · {step.node}**", *(new or ["*nothing new*"])]
        return "\n\n".join(lines)


def walk(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    question: str,
    settings: Settings | Mapping[str, object] | None = None,
) -> Walk:
    """Run a graph, and return every node's update and the final state.

    Parallel branches are listed one after the other, in the order of the graph's nodes, so the same
    run always looks the same.

    Raises:
        SettingsError: a setting is unknown or out of range.
    """
    context = (
        settings
        if isinstance(settings, Settings)
        else PaperSettings.model_validate({**(settings or {})})
    )
    record = _Record(list(graph.nodes))
    state: Any = {}
    stream = graph.stream(
        {"question": question}, context=context, stream_mode=["debug", "values"], subgraphs=True
    )
    for namespace, mode, chunk in cast("Any", stream):
        if mode == "debug":
            record.hear(namespace, chunk)
        elif not namespace:
            state = chunk
    return Walk(record.steps(), state)


class _Record:
    """Tasks by their position in the run: step, then node, level by level."""

    def __init__(self, order: list[str]) -> None:
        self._order = order
        self._places: dict[str, Place] = {"": ()}
        self._updates: dict[Place, Mapping[str, Any]] = {}

    def hear(self, namespace: tuple[str, ...], chunk: Mapping[str, Any]) -> None:
        """Record the position of a task when it starts, and its update when it ends."""
        payload = chunk["payload"]
        if chunk["type"] == "task":
            above = self._places[namespace[-1].rpartition(":")[2] if namespace else ""]
            name: str = payload["name"]
            order = self._order.index(name) if not namespace else 0
            self._places[payload["id"]] = (*above, (chunk["step"], order, name))
        elif chunk["type"] == "task_result":
            self._updates[self._places[payload["id"]]] = values_of(payload["result"])

    def steps(self) -> list[Step]:
        """Return all steps in order, without subgraphs, whose nodes have the same updates."""
        whole = {place[:depth] for place in self._updates for depth in range(1, len(place))}
        return [
            Step(":".join(name for _, _, name in place), self._updates[place])
            for place in sorted(self._updates)
            if place not in whole
        ]

"""The layout of a graph drawn from left to right."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Edge = tuple[str, str]


class Spot(NamedTuple):
    """The position of one node."""

    column: int
    """Column from the left, from 0."""
    row: float
    """Rows below the middle of the drawing."""


def laid_out(nodes: Sequence[str], edges: Iterable[Edge]) -> dict[str, Spot]:
    """Give every node the column of the longest path to it, and spread each column evenly.

    Edges that close a cycle are ignored. In a column, nodes keep their order; the only successor of
    a node keeps its row.
    """
    forward = _without_returns(nodes, list(edges))
    columns = _columns(nodes, forward)
    spots: dict[str, Spot] = {}
    for column in range(max(columns.values(), default=-1) + 1):
        here = [node for node in nodes if columns[node] == column]
        for place, node in enumerate(here):
            leader = _leader(node, forward)
            row = spots[leader].row if leader else place - (len(here) - 1) / 2
            spots[node] = Spot(column, row)
    return spots


def _leader(node: str, edges: Sequence[Edge]) -> str:
    """Return the only predecessor, if this node is its only successor; otherwise None."""
    before = {source for source, target in edges if target == node}
    after = {target for source, target in edges if source in before}
    return before.pop() if len(before) == len(after) == 1 else ""


def _columns(nodes: Sequence[str], edges: Sequence[Edge]) -> Mapping[str, int]:
    columns = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for source, target in edges:
            columns[target] = max(columns[target], columns[source] + 1)
    return columns


def _without_returns(nodes: Sequence[str], edges: Sequence[Edge]) -> list[Edge]:
    """Remove the edges that close a cycle, walking in the order of the nodes."""
    following = {node: [target for source, target in edges if source == node] for node in nodes}
    closing: set[Edge] = set()
    visited: set[str] = set()

    def visit(node: str, path: frozenset[str]) -> None:
        for target in following[node]:
            if target in path or target == node:
                closing.add((node, target))
            elif target not in visited:
                visit(target, path | {node})
        visited.add(node)

    for node in nodes:
        if node not in visited:
            visit(node, frozenset())
    return [edge for edge in edges if edge not in closing]

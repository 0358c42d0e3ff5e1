"""Where the nodes of a graph stand when it is drawn from left to right."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

Edge = tuple[str, str]


class Spot(NamedTuple):
    """The place of one node."""

    column: int
    """From the left, from 0."""
    row: float
    """From the middle of the drawing, downwards."""


def laid_out(nodes: Sequence[str], edges: Iterable[Edge]) -> dict[str, Spot]:
    """Give every node the column of the longest path to it, and spread each column evenly.

    Edges that lead back to a node of the path they are on do not count, so that cycles end. In a
    column, nodes keep their order; a node that alone follows another one keeps that one's row.
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
    """Return the one node before this one, if nothing else follows it either; else nothing."""
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
    """Leave out the edges that close a cycle, as a walk in the order of the nodes meets them."""
    following = {node: [target for source, target in edges if source == node] for node in nodes}
    closing: set[Edge] = set()
    ended: set[str] = set()

    def visit(node: str, path: frozenset[str]) -> None:
        for target in following[node]:
            if target in path or target == node:
                closing.add((node, target))
            elif target not in ended:
                visit(target, path | {node})
        ended.add(node)

    for node in nodes:
        if node not in ended:
            visit(node, frozenset())
    return [edge for edge in edges if edge not in closing]

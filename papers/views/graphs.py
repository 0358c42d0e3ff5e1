"""A compiled graph, drawn from left to right, with the visited nodes highlighted."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langgraph.graph.state import CompiledStateGraph

from crag.papers.views.display import Picture
from crag.papers.views.layers import Edge, Spot, laid_out
from crag.papers.views.theme import ACCENT, ACCENT_SOFT, FAINT, INK, LINE, PAPER, WIDTH, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {"__start__": "question", "__end__": "answer"}
_HALF_WIDTH, _HALF_HEIGHT = 0.43, 0.26
_ROW, _COLUMN = 0.86, 1.06
"""Inches."""
_FONT = 8.5
_BEND, _CLEARANCE, _HEAD = 0.3, 0.16, 0.03
_REACH = 0.75
"""How far a cubic curve reaches towards its control points."""


def draw_graph(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    visited: Collection[str] | None = None,
    *,
    within: bool = False,
) -> Picture:
    """Draw nodes and edges, highlighting the path of a run through the `visited` nodes.

    `within` also draws the nodes of subgraphs, as `Walk.nodes` names them. Question and answer are
    always visited.
    """
    drawn = graph.get_graph(xray=within)
    edges = [(edge.source, edge.target) for edge in drawn.edges]
    conditional = {(edge.source, edge.target) for edge in drawn.edges if edge.conditional}
    spots = laid_out(list(drawn.nodes), edges)
    lit = set(spots) if visited is None else {*visited, *_NAMES} & set(spots)
    taken = set(edges) if visited is None else {e for e in edges if _is_taken(e, edges, lit)}
    with _canvas(spots, edges) as (figure, axes):
        for edge in edges:
            _edge(axes, edge, spots, lit=edge in taken, dashed=edge in conditional)
        for node, spot in spots.items():
            _node(axes, node, spot, lit=node in lit)
    return Picture(figure, _says(graph.get_name(), spots, visited, lit))


@contextmanager
def _canvas(spots: Mapping[str, Spot], edges: Sequence[Edge]) -> "Iterator[tuple[Figure, Axes]]":
    columns = max(spot.column for spot in spots.values())
    courses = [_course(edge, spots) for edge in edges]
    rows = [spot.row for spot in spots.values()]
    arcs = [_REACH * y + (1 - _REACH) * points[0][1] for points in courses for _, y in points]
    top, bottom = min([*arcs, min(rows) - _HALF_HEIGHT]) - 0.12, max(rows) + _HALF_HEIGHT + 0.12
    height, width = _ROW * (bottom - top) + 0.3, max(WIDTH, _COLUMN * (columns + 1))
    with drawing(height, width=width) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set(xlim=(-0.52, columns + 0.52), ylim=(bottom, top))
        yield figure, axes


def _is_taken(edge: Edge, edges: Sequence[Edge], lit: Collection[str]) -> bool:
    """Return whether a run took an edge: both ends ran, and no detour that ran replaces it."""
    source, target = edge
    if source not in lit or target not in lit:
        return False
    onwards = [after for before, after in edges if before == source and after in lit]
    return not any((after, target) in edges for after in onwards if after != target)


def _edge(axes: "Axes", edge: Edge, spots: Mapping[str, Spot], *, lit: bool, dashed: bool) -> None:
    from matplotlib.patches import FancyArrowPatch, PathPatch
    from matplotlib.path import Path

    points = _course(edge, spots)
    codes = [Path.MOVETO, *([Path.LINETO] if len(points) == len(edge) else [Path.CURVE4] * 3)]
    colour, width, order = (ACCENT, 1.8, 2) if lit else (FAINT, 0.9, 1)
    style: dict[str, Any] = {"edgecolor": colour, "linewidth": width, "zorder": order}
    line = PathPatch(Path(points, codes), facecolor="none", capstyle="butt", **style)
    line.set_linestyle((0, (4, 2)) if dashed else "solid")
    axes.add_patch(line)
    (x, y), (end_x, end_y) = points[-2:]
    length = max(abs(end_x - x), abs(end_y - y))
    near = (end_x - _HEAD * (end_x - x) / length, end_y - _HEAD * (end_y - y) / length)
    head: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 11, "shrinkA": 0, "shrinkB": 0}
    axes.add_patch(FancyArrowPatch(near, points[-1], facecolor=colour, **head, **style))


def _course(edge: Edge, spots: Mapping[str, Spot]) -> list[tuple[float, float]]:
    """Return the points of an edge: straight, over nodes in between, or bent into a row."""
    start, end = (spots[node] for node in edge)
    left, right = start.column + _HALF_WIDTH, end.column - _HALF_WIDTH
    if end.column <= start.column or (end.column - start.column > 1 and start.row == end.row):
        top, peak = start.row - _HALF_HEIGHT, _peak(start, end, spots)
        return [(start.column, top), (start.column, peak), (end.column, peak), (end.column, top)]
    if start.row == end.row:
        return [(left, start.row), (right, end.row)]
    if end.column - start.column > 1:  # Along its own row first, then into the other one.
        bend = (right - _BEND, start.row)
        return [(left, start.row), bend, bend, (right, end.row)]
    middle = (left + right) / 2
    return [(left, start.row), (middle, start.row), (middle, end.row), (right, end.row)]


def _peak(start: Spot, end: Spot, spots: Mapping[str, Spot]) -> float:
    """Return the height of an arc that clears all nodes below it."""
    columns = range(min(start.column, end.column), max(start.column, end.column) + 1)
    highest = min(spot.row for spot in spots.values() if spot.column in columns)
    top = start.row - _HALF_HEIGHT
    clearance = _CLEARANCE + 0.05 * len(columns)
    return top - (top - (highest - _HALF_HEIGHT - clearance)) / _REACH


def _node(axes: "Axes", node: str, spot: Spot, *, lit: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    is_end = node in _NAMES
    axes.add_patch(
        FancyBboxPatch(
            (spot.column - _HALF_WIDTH, spot.row - _HALF_HEIGHT),
            2 * _HALF_WIDTH,
            2 * _HALF_HEIGHT,
            boxstyle=f"round,pad=0,rounding_size={0.2 if is_end else 0.08}",
            facecolor=(ACCENT if is_end else ACCENT_SOFT) if lit else PAPER,
            edgecolor=ACCENT if lit else LINE,
            linewidth=1.6 if lit else 1.0,
            zorder=3,
        )
    )
    name = _NAMES.get(node, node).rpartition(":")[2]
    colour = (PAPER if is_end else INK) if lit else FAINT
    axes.text(
        spot.column, spot.row, name, ha="center", va="center", color=colour, size=_FONT, zorder=4
    )


def _says(
    name: str, spots: Mapping[str, Spot], visited: Collection[str] | None, lit: Collection[str]
) -> str:
    inner = [node for node in spots if node not in _NAMES]
    if visited is None:
        return f"The graph {name}: {', '.join(inner)}"
    ran = [node for node in inner if node in lit]
    rested = [node for node in inner if node not in lit]
    return f"The graph {name}. Ran: {', '.join(ran)}. Did not run: {', '.join(rested) or 'none'}"

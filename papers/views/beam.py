"""The beam search of the long form as a tree: candidates, the beam, and the chosen path."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.errors import CragError
from crag.papers.views.display import Picture, shortened
from crag.papers.views.runs import Walk
from crag.papers.views.theme import ACCENT, ACCENT_SOFT, DIM, INK, LINE, PAPER, SOFT, drawing
from crag.reflection.cleaning import cleaned
from crag.state import Critique

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ROUND = "beam_step"
_WRAP, _LINES = 30, 3
_HALF_WIDTH, _HALF_HEIGHT = 0.40, 0.42
_ROW = 0.78


class Twig(NamedTuple):
    """One candidate of the search, and what it continues."""

    critique: Critique
    parent: int | None
    """Index of its parent; None at the start of an answer."""


class _Box(NamedTuple):
    """Position and style of one drawn item."""

    column: int
    row: float
    text: str
    score: str = ""
    kept: bool = True
    chosen: bool = True


def beam_tree(run: Walk) -> list[Twig]:
    """Return all candidates of a run in the order of their critiques.

    Raises:
        CragError: the run has no beam search; only ``form="long"`` has one.
    """
    rounds = [step.update for step in run.steps if step.node.rpartition(":")[2] == _ROUND]
    if not rounds:
        message = f"there is no beam in the run {run!r}: ask with the setting form=long"
        raise CragError(message)
    parents: list[int | None] = []
    ends: list[int | None] = [None]
    for update in rounds:
        reflection = update["reflection"]
        new = reflection["critiques"][len(parents) :]
        parents += [ends[critique["hypothesis"]] for critique in new]
        pool = reflection["beam"]["pool"] if reflection["beam"] is not None else []
        ends = [one["critiques"][-1] if one["critiques"] else None for one in pool]
    found = run.state["reflection"]
    critiques = found["critiques"] if found else []
    return [Twig(*pair) for pair in zip(critiques, parents, strict=True)]


def draw_beam(run: Walk) -> Picture:
    """Draw the beam from left to right, a column for each segment; the answer's path is filled.

    Outlined candidates were kept in the beam after their segment, grey ones were not.

    Raises:
        CragError: the run has no beam search.
    """
    twigs = beam_tree(run)
    boxes = _boxes(twigs, run.state["question"])
    rows = [box.row for box in boxes.values()]
    columns = max(box.column for box in boxes.values())
    with drawing(_ROW * (max(rows) - min(rows) + 1) + 0.5) as figure:
        axes = figure.add_subplot()
        axes.set_axis_off()
        axes.set(xlim=(-0.48, columns + 0.48), ylim=(max(rows) + 0.55, min(rows) - 0.55))
        for place, twig in enumerate(twigs):
            if place in boxes:
                _branch(axes, boxes[twig.parent], boxes[place])
        for box in boxes.values():
            _box(axes, box)
    return Picture(figure, _says(twigs, len(boxes) - 1))


def _boxes(twigs: Sequence[Twig], question: str) -> dict[int | None, _Box]:
    """Place the candidates that have text, the best of each parent first."""
    boxes: dict[int | None, _Box] = {None: _Box(0, 0.0, question)}
    said = [place for place, twig in enumerate(twigs) if cleaned(twig.critique["text"])]
    for segment in sorted({twigs[place].critique["segment"] for place in said}):
        here = [place for place in said if twigs[place].critique["segment"] == segment]
        here.sort(key=lambda place: _rank(twigs[place], boxes))
        for row, place in enumerate(here):
            boxes[place] = _placed(twigs[place].critique, row - (len(here) - 1) / 2)
    return boxes


def _rank(twig: Twig, boxes: Mapping[int | None, _Box]) -> tuple[float, float]:
    return boxes[twig.parent].row, -twig.critique["total"]


def _placed(critique: Critique, row: float) -> _Box:
    return _Box(
        column=critique["segment"] + 1,
        row=row,
        text=cleaned(critique["text"]),
        score=f"{critique['total']:.2f}",
        kept=critique["kept"],
        chosen=critique["chosen"],
    )


def _branch(axes: "Axes", start: _Box, end: _Box) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    left, right = start.column + _HALF_WIDTH, end.column - _HALF_WIDTH
    colour = ACCENT if end.kept else LINE
    width = 2.4 if end.chosen else 1.2
    middle = (left + right) / 2
    points = [(left, start.row), (middle, start.row), (middle, end.row), (right, end.row)]
    path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    axes.add_patch(PathPatch(path, facecolor="none", edgecolor=colour, linewidth=width, zorder=1))


def _box(axes: "Axes", box: _Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch(
            (box.column - _HALF_WIDTH, box.row - _HALF_HEIGHT),
            2 * _HALF_WIDTH,
            2 * _HALF_HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=ACCENT_SOFT if box.chosen else PAPER,
            edgecolor=ACCENT if box.kept else LINE,
            linewidth=1.6 if box.kept else 1.0,
            zorder=2,
        )
    )
    text = "\n".join(textwrap.wrap(box.text, _WRAP, max_lines=_LINES, placeholder=" …"))
    left, colour = box.column - _HALF_WIDTH + 0.03, INK if box.kept else DIM
    style: dict[str, Any] = {"fontsize": 8, "color": colour, "zorder": 3}
    axes.text(left, box.row, text, ha="left", va="center", linespacing=1.25, **style)
    right, tone = box.column + _HALF_WIDTH - 0.03, SOFT if box.kept else DIM
    score: dict[str, Any] = {
        "ha": "right",
        "va": "bottom",
        "fontsize": 8,
        "fontweight": "bold",
        "color": tone,
    }
    axes.text(right, box.row + _HALF_HEIGHT - 0.06, box.score, zorder=3, **score)


def _says(twigs: Sequence[Twig], shown: int) -> str:
    answer = [twig.critique for twig in twigs if twig.critique["chosen"]]
    path = " → ".join(shortened(cleaned(critique["text"]), 40) for critique in answer)
    segments = 1 + max(twig.critique["segment"] for twig in twigs)
    return f"{shown} candidates in {segments} segments; the answer: {path}"

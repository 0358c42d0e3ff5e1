"""The scores of retrieved documents against the thresholds, as bars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from crag.correction.scoring import LOWEST
from crag.papers.views.display import Picture, shortened
from crag.papers.views.theme import (
    COLOURS,
    FAINT,
    INK,
    SOFT,
    action_of,
    drawing,
    name_actions,
    shade_actions,
    signed,
    signs,
)
from crag.state import Action, State, Thresholds, known_action

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = 38
_ROW, _FRAME = 0.36, 1.35
_RANGE = (-1.0, 1.0)


def draw_scores(state: State) -> Picture:
    """Draw the score of each document of a run; the best one decides the action and is highlighted.

    Documents are in retrieval order, first at the top.
    """
    scores = [max(one.metadata["score"], LOWEST) for one in state["documents"]]
    names = [
        shortened(str(document.metadata.get("title") or f"document {place}"), _TITLE)
        for place, document in enumerate(state["documents"], start=1)
    ]
    action = known_action(state["action"])
    thresholds = state["thresholds"] or Thresholds(upper=0.0, lower=0.0)
    with drawing(_FRAME + _ROW * len(scores)) as figure:
        axes = figure.add_subplot()
        left, right = min(_RANGE[0], *scores, 0), max(_RANGE[1], *scores, 0)
        axes.set(xlim=(left, right), ylim=(len(scores) - 0.4, -0.6))
        shade_actions(axes, thresholds)
        name_actions(axes, thresholds)
        _bars(axes, scores, left, thresholds)
        axes.set_yticks(range(len(names)), names, color=INK)
        axes.set_title(signs(_title(action, scores)), color=COLOURS[action])
        _name_thresholds(axes, thresholds)
    return Picture(figure, _says(action, scores, names, thresholds))


def _bars(axes: "Axes", scores: Sequence[float], left: float, thresholds: Thresholds) -> None:
    best = max(scores, default=LOWEST)
    for row, score in enumerate(scores):
        colour = COLOURS[action_of(score, thresholds)] if score == best else FAINT
        axes.barh(row, score - left, left=left, height=0.56, color=colour, zorder=2)
        axes.annotate(
            signed(score),
            (1, row),
            (8, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            va="center",
            color=colour if score == best else SOFT,
            fontweight="bold" if score == best else "normal",
        )


def _name_thresholds(axes: "Axes", thresholds: Thresholds) -> None:
    lower, upper = thresholds["lower"], thresholds["upper"]
    axes.set_xticks(
        [lower, 0.0, upper], [f"lower\n{signed(lower)}", "0", f"upper\n{signed(upper)}"]
    )
    axes.tick_params(axis="x", colors=SOFT)


def _title(action: Action, scores: Sequence[float]) -> str:
    if not scores:
        return f"{action.capitalize()}: no document was retrieved"
    return f"{action.capitalize()}: the best of {len(scores)} documents scores {max(scores):+.2f}"


def _says(
    action: Action, scores: Sequence[float], names: Sequence[str], thresholds: Thresholds
) -> str:
    listed = "; ".join(f"{name} {score:+.2f}" for name, score in zip(names, scores, strict=True))
    limits = f"upper {thresholds['upper']:.2f}, lower {thresholds['lower']:.2f}"
    return f"{_title(action, scores)} ({limits}). {listed}".strip()

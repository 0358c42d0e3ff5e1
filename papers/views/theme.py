"""The style of pictures: the colours of the page on a light card, also in dark viewers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crag.correction.action import decide
from crag.papers.bench.charts import chart
from crag.state import ACTIONS, Action, Thresholds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER, INK, SOFT, DIM = "#FDFCFA", "#1E2226", "#585F68", "#85827A"
LINE, FAINT = "#DCD9D0", "#A9A79F"
ACCENT, SECOND = "#0F5F59", "#A24E00"
ACCENT_SOFT = "#E0EFEC"
COLOURS: dict[Action, str] = {
    "correct": "#1B7A43",
    "ambiguous": "#B07908",
    "incorrect": "#B0322A",
}
SOFT_COLOURS: dict[Action, str] = {
    "correct": "#E2F3E8",
    "ambiguous": "#FAF0D7",
    "incorrect": "#FBE7E4",
}
WIDTH = 8.8
"""Inches; two image pixels per screen pixel at a notebook's usual width."""
_MARGIN = 0.12
_STYLE: dict[Any, Any] = {
    "figure.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlepad": 20,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "legend.frameon": False,
    "legend.labelcolor": INK,
}


@contextmanager
def drawing(height: float, *, width: float = WIDTH) -> Iterator["Figure"]:
    """Yield an empty figure of the given size in inches, in the common style.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    with chart((width, height), extra="train", style=_STYLE) as figure:
        figure.set_layout_engine("constrained", w_pad=_MARGIN, h_pad=_MARGIN)
        yield figure


def action_of(score: float, thresholds: Thresholds) -> Action:
    """Return the action for a set with this best score."""
    return decide([score], thresholds["upper"], thresholds["lower"])


def shade_actions(axes: "Axes", thresholds: Thresholds) -> None:
    """Shade the ranges of scores by action, within the limits of the axis."""
    left, right = axes.get_xlim()
    lower, upper = thresholds["lower"], thresholds["upper"]
    spans: dict[Action, tuple[float, float]] = {
        "correct": (upper, right),
        "ambiguous": (lower, upper),
        "incorrect": (left, lower),
    }
    for action in ACTIONS:
        axes.axvspan(*spans[action], color=SOFT_COLOURS[action], linewidth=0, zorder=0)
    for value in lower, upper:
        axes.axvline(value, color=SOFT, linewidth=1, linestyle=(0, (3, 2)), zorder=1)
    axes.set_xlim(left, right)


def name_actions(axes: "Axes", thresholds: Thresholds) -> None:
    """Label each shaded range with its action; outer labels are at the edges."""
    left, right = axes.get_xlim()
    middle = (thresholds["lower"] + thresholds["upper"]) / 2
    places: dict[Action, tuple[float, str]] = {
        "correct": (right, "right"),
        "ambiguous": (middle, "center"),
        "incorrect": (left, "left"),
    }
    for action in ACTIONS:
        place, side = places[action]
        axes.annotate(
            action,
            (place, 1),
            (0, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha=side,
            color=COLOURS[action],
            size=8.5,
        )


def signed(value: float) -> str:
    """Format a score with its sign."""
    return signs(f"{value:+.2f}")


def signs(text: str) -> str:
    """Use typographic minus signs."""
    return text.replace("-", "−")

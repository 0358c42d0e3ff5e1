"""What the charts of experiments and notebooks share; matplotlib comes when something is drawn."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crag.extras import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which the colour-blind can tell apart."""
BLUE, ORANGE, GREEN, PINK = COLOURS[:4]
GREY = "#595959"
_STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "font.size": 10,
    "legend.frameon": False,
    "svg.hashsalt": "crag",  # The same chart gives the same bytes.
}


def require_matplotlib() -> None:
    """Find out before any work whether charts can be drawn.

    Raises:
        MissingPackageError: matplotlib is missing.
    """
    require("train", "drawing pictures", "matplotlib")


@contextmanager
def chart(size: tuple[float, float], *, dpi: int = 100) -> Iterator["Figure"]:
    """Yield an empty figure; `size` is its width and height in inches, `dpi` its pixels an inch.

    Raises:
        MissingPackageError: matplotlib is missing.
    """
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        yield Figure(figsize=size, dpi=dpi, layout="constrained")

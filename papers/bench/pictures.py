"""Charts: bars for the variants of an experiment, or a curve for a varied number.

matplotlib is imported when something is drawn, and pyplot is not used. Our numbers have 95 %
intervals; the paper's numbers, if there are any, are hollow marks.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crag.extras import require
from crag.papers.bench.experiments import ACCURACY, Experiment
from crag.papers.bench.summary import Cell, Line
from crag.papers.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
_MARKS = ("D", "s", "^", "v")
_WIDTH, _DPI = 7.0, 130


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


def draw(
    experiment: Experiment, lines: Sequence[Line], path: Path, accuracy: float | None = None
) -> Path | None:
    """Draw the first metric that has values, as PNG; None if there is nothing to draw.

    `accuracy` is the retrieval accuracy of the data, at which lines without a condition are drawn.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    names = lines[0].cells if lines else ()
    metric = next((name for name in names if any(one.cells[name] for one in lines)), None)
    if metric is None:
        return None
    varied = _varied(experiment, lines)
    height = 4.2 if varied else 1.2 + 0.36 * len(lines)
    with chart((_WIDTH, height), dpi=_DPI) as figure:
        axes = figure.add_subplot()
        if varied:
            _curves(axes, lines, metric, varied, accuracy)
        else:
            _bars(axes, lines, metric, published=(experiment.paper_metric or metric) == metric)
        axes.set_title(experiment.name)
        figure.savefig(path, metadata={"Software": None})
    return path


def _varied(experiment: Experiment, lines: Sequence[Line]) -> str:
    """Return the name of the one number that is varied; empty if there is none."""
    if any(line.condition for line in lines):
        return ACCURACY
    names = {name for swept in experiment.sweep for name in swept}
    if len(experiment.sweep) < 2 or len(names) != 1:  # noqa: PLR2004 - a curve has two ends
        return ""
    (name,) = names
    return name if all(isinstance(one.get(name), int | float) for one in experiment.sweep) else ""


def _bars(axes: "Axes", lines: Sequence[Line], metric: str, *, published: bool) -> None:
    scale = _scale(metric)
    cells = [line.cells[metric] for line in lines]
    places = list(range(len(lines)))[::-1]
    values = [scale * cell.value if cell else 0.0 for cell in cells]
    axes.barh(
        places, values, xerr=_errors(cells, scale), color=COLOURS[0], alpha=0.75, height=0.6,
        label="ours",
    )  # fmt: skip
    models = dict.fromkeys(model for line in lines for model in line.variant.paper)
    for number, model in enumerate(models if published else ()):
        papers = [line.variant.paper for line in lines]
        points = [(one[model], y) for one, y in zip(papers, places, strict=True) if model in one]
        axes.plot(
            *zip(*points, strict=True), _MARKS[number % len(_MARKS)], color=COLOURS[1 + number],
            fillstyle="none", linestyle="none", label=f"paper, {model}",
        )  # fmt: skip
    axes.set_yticks(places, [line.variant.name for line in lines])
    axes.set_xlabel(_named(metric))
    axes.grid(visible=False, axis="y")
    axes.figure.legend(loc="outside lower center", ncols=3, fontsize=8)


def _curves(
    axes: "Axes", lines: Sequence[Line], metric: str, varied: str, accuracy: float | None
) -> None:
    scale = _scale(metric)
    changing = {line.variant.name for line in lines if line.condition}
    curves: dict[str, list[tuple[float, Cell]]] = {}
    for line in lines:
        cell, name = line.cells[metric], line.variant.name
        if cell is None:
            continue
        value = line.variant.settings.get(varied)
        place = line.condition.get(ACCURACY, accuracy) if varied == ACCURACY else value
        if varied == ACCURACY and name not in changing:
            # It retrieves nothing, so the conditions do not change it.
            axes.axhline(scale * cell.value, color=GREY, linestyle=":", label=name)
        elif isinstance(place, int | float):
            base = name.removesuffix(f", {varied}={value}")
            curves.setdefault(base, []).append((float(place), cell))
    for number, (name, points) in enumerate(curves.items()):
        points.sort(key=lambda point: point[0])
        axes.errorbar(
            [place for place, _ in points],
            [scale * cell.value for _, cell in points],
            yerr=_errors([cell for _, cell in points], scale),
            fmt="o-", markersize=4, capsize=3, color=COLOURS[number % len(COLOURS)], label=name,
        )  # fmt: skip
    axes.set(xlabel=varied.replace("_", " "), ylabel=_named(metric))
    if varied == ACCURACY:
        axes.invert_xaxis()
    axes.figure.legend(loc="outside lower center", ncols=4, fontsize=8)


def _errors(cells: Sequence[Cell | None], scale: float) -> list[list[float]]:
    ends = [
        (cell.value - cell.low, cell.high - cell.value)
        if cell and cell.low is not None and cell.high is not None
        else (0.0, 0.0)
        for cell in cells
    ]
    return [[scale * below for below, _ in ends], [scale * above for _, above in ends]]


def _scale(metric: str) -> float:
    return 100.0 if METRICS[metric].unit == "share" else 1.0


def _named(metric: str) -> str:
    unit = METRICS[metric].unit
    return f"{metric.replace('_', ' ')} ({'%' if unit == 'share' else unit})"

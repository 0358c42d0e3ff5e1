"""The effect of thresholds: histograms, precision and recall, and the action mix."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from crag.correction.action import decide
from crag.papers.evaluator.evidence import Evidence
from crag.papers.views.display import Picture
from crag.papers.views.theme import (
    ACCENT,
    COLOURS,
    INK,
    PAPER,
    SECOND,
    SOFT,
    drawing,
    name_actions,
    shade_actions,
    signed,
)
from crag.state import ACTIONS, Action, Thresholds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BINS = 24
_STEPS = 201
_RANGE = (-1.0, 1.0)
Floats = NDArray[np.float64]


def draw_histogram(evidence: Evidence, thresholds: Thresholds) -> Picture:
    """Draw histograms of the scores, relevant texts above, the others below."""
    scores = np.asarray(evidence.all_scores)
    positive = np.array([pair.positive for pair in evidence.pairs])
    edges = np.linspace(min(_RANGE[0], scores.min()), max(_RANGE[1], scores.max()), _BINS + 1)
    groups = (("relevant", scores[positive], ACCENT), ("irrelevant", scores[~positive], SOFT))
    with drawing(4.6) as figure:
        for axes, (name, part, colour) in zip(
            figure.subplots(2, 1, sharex=True), groups, strict=True
        ):
            axes.hist(part, edges.tolist(), color=colour, rwidth=0.9, zorder=2)
            axes.set_xlim(edges[0], edges[-1])
            shade_actions(axes, thresholds)
            name_actions(axes, thresholds)
            axes.set_title(f"{len(part)} {name} texts")
            axes.set_ylabel("texts")
            axes.grid(axis="y")
        figure.axes[-1].set_xlabel("score")
    medians = (f"{len(part)} {name}, median {np.median(part):+.2f}" for name, part, _ in groups)
    return Picture(figure, f"Scores of texts: {'; '.join(medians)}")


def draw_precision_recall(evidence: Evidence, thresholds: Thresholds) -> Picture:
    """Draw precision and recall of single texts against the threshold."""
    grid = np.linspace(*_RANGE, _STEPS)
    curves = [precision_recall(evidence, float(value)) for value in grid]
    upper = thresholds["upper"]
    precision, recall = precision_recall(evidence, upper)
    with drawing(3.4) as figure:
        axes = figure.add_subplot()
        axes.set(xlim=_RANGE, ylim=(0, 1.04), xlabel="threshold", ylabel="share")
        shade_actions(axes, thresholds)
        name_actions(axes, thresholds)
        for place, (name, colour) in enumerate((("precision", ACCENT), ("recall", SECOND))):
            values = [curve[place] for curve in curves]
            axes.plot(grid, values, color=colour, linewidth=2.2, zorder=3)
            found = (precision, recall)[place]
            axes.plot(upper, found, "o", color=colour, markeredgecolor=PAPER, zorder=4)
            shift, side = ((8, 14), "left") if place == 0 else ((-8, -20), "right")
            axes.annotate(
                f"{name} {found:.2f}",
                (upper, found),
                shift,
                textcoords="offset points",
                ha=side,
                color=colour,
                fontweight="bold",
            )
        axes.set_title("Precision and recall of single texts")
    return Picture(
        figure,
        f"At the upper threshold {upper:.2f}: precision {precision:.2f}, recall {recall:.2f}",
    )


def precision_recall(evidence: Evidence, threshold: float) -> tuple[float, float]:
    """Return precision and recall of the texts above a threshold.

    The precision of an empty set is 1.
    """
    above = np.asarray(evidence.all_scores) >= threshold
    positive = np.array([pair.positive for pair in evidence.pairs])
    hits = int((above & positive).sum())
    precision = hits / int(above.sum()) if above.any() else 1.0
    return precision, hits / max(1, int(positive.sum()))


def draw_action_mix(evidence: Evidence, thresholds: Thresholds) -> Picture:
    """Draw the share of questions for each action as one threshold moves and the other is fixed.

    A line marks the given threshold.
    """
    upper, lower = thresholds["upper"], thresholds["lower"]
    best = [judged.best for judged in evidence.sets]
    uppers, lowers = np.linspace(lower, _RANGE[1], _STEPS), np.linspace(_RANGE[0], upper, _STEPS)
    panels = (
        ("upper", uppers, [action_mix(best, float(value), lower) for value in uppers], upper),
        ("lower", lowers, [action_mix(best, upper, float(value)) for value in lowers], lower),
    )
    with drawing(3.6) as figure:
        for axes, (name, grid, mixes, value) in zip(
            figure.subplots(1, 2, sharey=True), panels, strict=True
        ):
            _stack(axes, grid, mixes)
            axes.axvline(value, color=INK, linewidth=1.2, linestyle=(0, (3, 2)))
            axes.set_title(f"The {name} threshold moves", pad=8)
            axes.set(xlabel=f"{name} threshold (now {signed(value)})", xlim=(grid[0], grid[-1]))
        figure.axes[0].set(ylabel="share of questions", ylim=(0, 1))
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=3)
    mix = action_mix(best, upper, lower)
    said = ", ".join(f"{action} {mix[action]:.0%}" for action in ACTIONS)
    return Picture(figure, f"Of {len(best)} questions with these thresholds: {said}")


def action_mix(best: Sequence[float], upper: float, lower: float) -> dict[Action, float]:
    """Return the share of each action among questions with these best scores; they sum to 1."""
    counts = Counter(decide([score], upper, lower) for score in best)
    return {action: counts[action] / len(best) for action in ACTIONS}


def _stack(axes: "Axes", grid: Floats, mixes: Sequence[dict[Action, float]]) -> None:
    upwards = ACTIONS[::-1]
    rows = [[mix[action] for mix in mixes] for action in upwards]
    colours = [COLOURS[action] for action in upwards]
    axes.stackplot(grid, rows, labels=upwards, colors=colours, alpha=0.88, linewidth=0)

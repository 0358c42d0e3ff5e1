"""Charts of a calibration and of a training run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crag.correction.action import decide
from crag.errors import TrainingError
from crag.extras import require
from crag.papers.evaluator.evidence import Evidence
from crag.papers.saving import replacing
from crag.papers.views import Picture
from crag.state import ACTIONS, Action, Thresholds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, ORANGE, PINK, GREY = "#0072B2", "#D55E00", "#CC79A7", "#595959"
"""Okabe and Ito's, which the colour-blind can tell apart."""
_SIZE, _BINS, _STEPS = (6.4, 3.8), 24, 201
_RANGE = (-1.0, 1.0)


def require_drawable(folder: Path) -> None:
    """Find out before any work whether pictures can be drawn in `folder`, creating it.

    Raises:
        MissingPackageError: matplotlib is not installed.
        TrainingError: the folder cannot be made.
    """
    require("train", "drawing pictures", "matplotlib")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"no picture can be written to {folder}: {error.strerror}"
        raise TrainingError(message) from error


def draw_report(evidence: Evidence, thresholds: Thresholds, folder: Path) -> list[Path]:
    """Draw all charts of a calibration into `folder`; return their paths."""
    paths = []
    for draw in (draw_histogram, draw_precision_recall, draw_action_mix):
        paths.append(folder / f"{draw.__name__.removeprefix('draw_')}.png")
        with replacing(paths[-1]) as written:
            draw(evidence, thresholds).save(written)
    return paths


def draw_histogram(evidence: Evidence, thresholds: Thresholds) -> Picture:
    """Draw histograms of the scores of relevant texts and of the others."""
    scores = np.asarray(evidence.all_scores)
    positive = np.array([pair.positive for pair in evidence.pairs])
    edges = np.linspace(min(_RANGE[0], scores.min()), max(_RANGE[1], scores.max()), _BINS + 1)
    groups = (("relevant", scores[positive], BLUE), ("irrelevant", scores[~positive], ORANGE))
    figure = _figure()
    axes = figure.add_subplot()
    for name, part, colour in groups:
        label = f"{len(part)} {name}"
        axes.hist(part, edges.tolist(), color=colour, alpha=0.6, label=label)
    _mark(axes, thresholds)
    axes.set(title="Scores of texts", xlabel="score", ylabel="texts")
    medians = (f"{len(part)} {name}, median {np.median(part):+.2f}" for name, part, _ in groups)
    return Picture(figure, f"Scores of texts: {'; '.join(medians)}")


def draw_precision_recall(evidence: Evidence, thresholds: Thresholds) -> Picture:
    """Draw precision and recall of single texts against the threshold."""
    grid = np.linspace(*_RANGE, _STEPS)
    curves = [precision_recall(evidence, float(value)) for value in grid]
    upper = thresholds["upper"]
    precision, recall = precision_recall(evidence, upper)
    figure = _figure()
    axes = figure.add_subplot()
    for name, values, colour in zip(
        (f"precision, {precision:.2f} at upper", f"recall, {recall:.2f} at upper"),
        zip(*curves, strict=True), (BLUE, ORANGE), strict=True,
    ):  # fmt: skip
        axes.plot(grid, values, color=colour, label=name)
    _mark(axes, thresholds)
    axes.set(title="Precision and recall of single texts", xlabel="threshold", ylabel="share")
    told = f"At the upper threshold {upper:.2f}: precision {precision:.2f}, recall {recall:.2f}"
    return Picture(figure, told)


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
    """Draw the share of questions for each action as one threshold moves and the other is fixed."""
    upper, lower = thresholds["upper"], thresholds["lower"]
    best = [judged.best for judged in evidence.sets]
    uppers, lowers = np.linspace(lower, _RANGE[1], _STEPS), np.linspace(_RANGE[0], upper, _STEPS)
    panels = (
        ("upper", uppers, [action_mix(best, float(value), lower) for value in uppers], upper),
        ("lower", lowers, [action_mix(best, upper, float(value)) for value in lowers], lower),
    )
    figure = _figure()
    for axes, (name, grid, mixes, value) in zip(
        figure.subplots(1, 2, sharey=True), panels, strict=True
    ):
        rows = [[mix[action] for mix in mixes] for action in ACTIONS[::-1]]
        axes.stackplot(grid, rows, labels=ACTIONS[::-1], colors=(ORANGE, PINK, BLUE), alpha=0.8)
        axes.axvline(value, color=GREY, linestyle="--")
        axes.set(title=f"The {name} threshold moves", xlabel=f"{name} (now {value:+.2f})")
    figure.axes[0].set(ylabel="share of questions", ylim=(0, 1))
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center")
    mix = action_mix(best, upper, lower)
    said = ", ".join(f"{action} {mix[action]:.0%}" for action in ACTIONS)
    return Picture(figure, f"Of {len(best)} questions with these thresholds: {said}")


def action_mix(best: Sequence[float], upper: float, lower: float) -> dict[Action, float]:
    """Return the share of each action among questions with these best scores; they sum to 1."""
    counts = Counter(decide([score], upper, lower) for score in best)
    return {action: counts[action] / len(best) for action in ACTIONS}


def training_curves(history: Sequence[Mapping[str, float]], path: Path) -> None:
    """Draw the loss of a training run, of whose log `history` is; the folder of `path` is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    points = [(entry["step"], entry["loss"]) for entry in history if "loss" in entry]
    figure = _figure()
    axes = figure.add_subplot()
    axes.plot(*zip(*points, strict=True), color=BLUE)
    axes.set(title="Training", xlabel="step", ylabel="loss")
    with replacing(path) as written:
        Picture(figure, "The loss of a training run").save(written)


def _figure() -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=_SIZE, layout="constrained")


def _mark(axes: "Axes", thresholds: Thresholds) -> None:
    for name, value, style in (
        ("lower", thresholds["lower"], ":"), ("upper", thresholds["upper"], "--")
    ):  # fmt: skip
        axes.axvline(value, color=GREY, linestyle=style, label=f"{name} {value:+.2f}")
    axes.legend()

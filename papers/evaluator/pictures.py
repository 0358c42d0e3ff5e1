"""Charts of a calibration and of a training run: PNG or SVG by file name."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from crag.errors import TrainingError
from crag.papers.bench.charts import BLUE, GREEN, GREY, ORANGE, PINK, chart, require_matplotlib
from crag.papers.evaluator.calibrate import Report
from crag.papers.evaluator.metrics import as_probability, reliability
from crag.papers.evaluator.thresholds import trade_off

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE, _DPI = (6.4, 4.0), 150
_WITHOUT_DATE = {".svg": {"Date": None}, ".png": {"Software": None}}
_HISTOGRAM_BINS = 30
_NOT_MEASURED = {"step", "epoch"}


def require_drawable(folder: Path) -> None:
    """Find out before any work whether pictures can be drawn in `folder`, creating it.

    Raises:
        MissingPackageError: matplotlib is not installed.
        TrainingError: the folder cannot be written to.
    """
    require_matplotlib("train")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        message = f"no picture can be written to {folder}: {error.strerror}"
        raise TrainingError(message) from error


def draw_report(report: Report, folder: Path, suffix: str = ".png") -> list[Path]:
    """Draw all charts of a calibration into `folder`, creating it; return their paths.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    pictures = {
        "scores": score_histogram,
        "precision_recall": precision_recall,
        "reliability": reliability_diagram,
        "trade_off": trade_off_curves,
    }
    folder.mkdir(parents=True, exist_ok=True)
    paths = [(folder / name).with_suffix(suffix) for name in pictures]
    for path, picture in zip(paths, pictures.values(), strict=True):
        picture(report, path)
    return paths


def score_histogram(report: Report, path: Path) -> None:
    """Draw the distributions of scores of relevant and other texts, with the thresholds."""
    scores = np.asarray(report.evidence.all_scores)
    relevant = np.array([pair.positive for pair in report.evidence.pairs])
    edges = np.linspace(scores.min(), scores.max(), _HISTOGRAM_BINS + 1).tolist()

    def plot(axes: "Axes") -> None:
        for part, colour, name in (
            (~relevant, ORANGE, "irrelevant"),
            (relevant, BLUE, "relevant"),
        ):
            axes.hist(scores[part], edges, color=colour, alpha=0.6, label=f"{name} ({part.sum()})")
        _mark_thresholds(axes, report)
        axes.set(title="Scores of texts", xlabel="score", ylabel="texts")
        axes.legend()

    _draw(path, plot)


def precision_recall(report: Report, path: Path) -> None:
    """Draw precision against recall of single texts, over all thresholds."""
    from sklearn.metrics import precision_recall_curve

    positives = [pair.positive for pair in report.evidence.pairs]
    precision, recall, _ = precision_recall_curve(positives, report.evidence.all_scores)

    def plot(axes: "Axes") -> None:
        axes.step(recall, precision, where="post", color=BLUE, label="the evaluator")
        share = sum(positives) / len(positives)
        axes.axhline(share, color=GREY, linestyle=":", label=f"chance ({share:.2f})")
        axes.set(title=f"Precision and recall of texts (AUC {report.metrics['auc']:.3f})")
        axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.02), ylim=(0, 1.02))
        axes.legend(loc="lower left")

    _draw(path, plot)


def reliability_diagram(report: Report, path: Path) -> None:
    """Draw how often texts are relevant for each predicted probability.

    A score s in [-1, 1] predicts the probability (1 + s) / 2; scores outside are clipped.
    """
    positives = [pair.positive for pair in report.evidence.pairs]
    bins = reliability(positives, as_probability(report.evidence.all_scores))

    def plot(axes: "Axes") -> None:
        axes.plot([0, 1], [0, 1], color=GREY, linestyle=":", label="reliable")
        axes.plot(*zip(*((b.probability, b.relevant) for b in bins), strict=True), "o-", color=BLUE)
        for part in bins:
            place = (part.probability, part.relevant)
            axes.annotate(str(part.texts), place, (4, -11), textcoords="offset points", fontsize=8)
        axes.set(title="Reliability (with the number of texts)", xlim=(0, 1.02), ylim=(0, 1.02))
        axes.set(xlabel="probability stated, (1 + score) / 2", ylabel="share of relevant texts")
        axes.legend(loc="upper left")

    _draw(path, plot)


def trade_off_curves(report: Report, path: Path) -> None:
    """Draw the effect of every threshold as the upper one, and as the lower one."""
    rows = trade_off(report.evidence.sets)
    thresholds = [row.threshold for row in rows]
    lines = (
        ("as upper: precision of Correct", [row.precision for row in rows], BLUE, "-"),
        ("as upper: questions judged Correct", [row.correct for row in rows], GREEN, "--"),
        ("as lower: questions judged Incorrect", [row.incorrect for row in rows], PINK, "--"),
        ("as lower: usable sets discarded", [row.discarded for row in rows], ORANGE, "-"),
    )

    def plot(axes: "Axes") -> None:
        for name, values, colour, style in lines:
            axes.step(thresholds, values, where="mid", color=colour, linestyle=style, label=name)
        _mark_thresholds(axes, report)
        axes.set(title="What a threshold does", xlabel="threshold", ylabel="share", ylim=(0, 1.02))
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=8)

    _draw(path, plot)


def training_curves(history: Sequence[Mapping[str, float]], path: Path) -> None:
    """Draw the course of a training run: losses on the left axis, other metrics on the right.

    Each entry of `history` has a `step` and any of `loss`, `eval_loss` and other metrics. `epoch`
    is not drawn. The folder of `path` is made.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for entry in history for name in entry))
    measured = [name for name in names if name not in _NOT_MEASURED]
    losses = [name for name in measured if name.endswith("loss")]
    others = [name for name in measured if name not in losses]

    def plot(axes: "Axes") -> None:
        _curves(axes, history, losses, "-")
        axes.set(title="Training", xlabel="step", ylabel="loss")
        if others:
            right = axes.twinx()
            right.grid(visible=False)
            right.spines["right"].set_visible(True)
            _curves(right, history, others, "--", first=len(losses))
            right.set(ylabel="metric")
        axes.figure.legend(loc="outside lower center", ncols=4, fontsize=8)

    _draw(path, plot)


def _curves(
    axes: "Axes",
    history: Sequence[Mapping[str, float]],
    names: Sequence[str],
    style: str,
    first: int = 0,
) -> None:
    colours = (BLUE, ORANGE, GREEN, PINK, GREY)
    for number, name in enumerate(names, first):
        points = [(entry["step"], entry[name]) for entry in history if name in entry]
        colour = colours[number % len(colours)]
        marker = "o" if len(points) <= _HISTOGRAM_BINS else None
        steps, values = zip(*points, strict=True)
        axes.plot(steps, values, style, marker=marker, markersize=3, color=colour, label=name)


def _mark_thresholds(axes: "Axes", report: Report) -> None:
    for name, style in (("lower", ":"), ("upper", "--")):
        value = report.calibration.thresholds[name]  # type: ignore[literal-required]
        axes.axvline(value, color=GREY, linestyle=style, label=f"{name} {value:g}")


def _draw(path: Path, plot: Callable[["Axes"], None]) -> None:
    """Draw one chart and write it atomically; the same data gives the same bytes."""
    with chart(_SIZE, dpi=_DPI, extra="train") as figure:
        plot(figure.add_subplot())
        suffix = path.suffix.lower()
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".picture-", suffix=suffix)
        os.close(handle)
        try:
            figure.savefig(temporary, metadata=_WITHOUT_DATE.get(suffix))
            Path(temporary).chmod(0o644)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

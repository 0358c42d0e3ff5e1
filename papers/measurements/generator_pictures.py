"""Pictures of what generators answered: right and made up, and the curve of degraded retrieval."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from generator_report import RIGHT, Answered, Measured, accuracy_of, by_row

from crag.papers.charts import BLUE, COLOURS, ORANGE, chart
from crag.papers.experiments.intervals import bootstrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DPI, _BAR = 130, 0.8
ROWS = (
    "no retrieval", "rag, unchecked", "rag, ten documents", "rag, best five", "crag",
    "crag, with doubt", "crag, the paper's strips",
)  # fmt: skip


def draw_verdicts(measured: Sequence[Measured], path: Path) -> None:
    """Draw right answers and made-up ones, of the questions that all rows of a model answered."""
    rows = [
        (f"{one.model}\n{name} ({len(found)})", found)
        for one in measured
        for name, found in _in_common(one)
        if any(not each.example.answers for each in found)
    ]
    with chart((7.0, 1.1 + 0.42 * len(rows)), dpi=_DPI, extra="bench") as figure:
        right, made_up = figure.subplots(1, 2, sharey=True)
        able = [[one for one in found if one.example.answers] for _, found in rows]
        unable = [[one for one in found if not one.example.answers] for _, found in rows]
        _bars(right, able, lambda one: one.verdict in RIGHT, BLUE)
        _bars(made_up, unable, lambda one: one.verdict != "declined", ORANGE)
        right.set(xlabel="right of the answerable (%)", xlim=(0, 100))
        made_up.set(xlabel="made up of the unanswerable (%)", xlim=(0, 100))
        right.set_yticks(range(len(rows)), [name for name, _ in rows], fontsize=8)
        right.invert_yaxis()
        figure.savefig(path, metadata={"Software": None})


def _in_common(one: Measured) -> list[tuple[str, list[Answered]]]:
    rows = {name: found for _, name, found in by_row([one]) if name in ROWS}
    common = set.intersection(*({each.example.id for each in found} for found in rows.values()))
    return [(name, [each for each in found if each.example.id in common])
            for name, found in rows.items()]  # fmt: skip


def _bars(
    axes: "Axes",
    groups: Sequence[Sequence[Answered]],
    holds: Callable[[Answered], bool],
    colour: str,
) -> None:
    for place, group in enumerate(groups):
        value, below, above = _share(group, holds)
        axes.barh(place, value, xerr=[[below], [above]], color=colour, alpha=0.75, height=_BAR)
    axes.grid(visible=False, axis="y")


def draw_curve(measured: Sequence[Measured], path: Path) -> None:
    """Draw right and wrong answers as the relevant documents of more and more questions go."""
    rows = list(by_row(measured))
    is_one_model = len({model for model, _, _ in rows}) == 1
    with chart((7.0, 3.6), dpi=_DPI, extra="bench") as figure:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for number, (model, name, found) in enumerate(rows):
            places = sorted({accuracy_of(one) for one in found})
            groups = [[one for one in found if accuracy_of(one) == place] for place in places]
            colour = COLOURS[number % len(COLOURS)]
            label = name if is_one_model else f"{name}, {model}"
            for axes, holds in zip(panels, (_is_right, _is_wrong), strict=True):
                values = [_share(group, holds) for group in groups]
                if len(values) == 1:  # It reads no documents.
                    axes.axhline(values[0][0], color=colour, linestyle=":", label=label)
                    continue
                axes.errorbar(
                    [100 * place for place in places], [value for value, _, _ in values],
                    yerr=list(zip(*((below, above) for _, below, above in values), strict=True)),
                    fmt="o-", markersize=4, capsize=3, color=colour, label=label,
                )  # fmt: skip
        panels[0].set(ylabel="right (%)", ylim=(0, 100))
        panels[1].set(ylabel="wrong (%)")
        panels[0].invert_xaxis()
        for axes in panels:
            axes.set_xlabel("questions with a relevant document (%)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=9)
        figure.savefig(path, metadata={"Software": None})


def _is_right(one: Answered) -> bool:
    return one.verdict in RIGHT


def _is_wrong(one: Answered) -> bool:
    return one.verdict == "wrong"


def _share(
    group: Sequence[Answered], holds: Callable[[Answered], bool]
) -> tuple[float, float, float]:
    """Return a share in per cent, and how far its interval reaches below and above."""
    numbers = [100 * float(holds(one)) for one in group]
    if not numbers:
        return 0.0, 0.0, 0.0
    low, high = bootstrap(numbers, 0)
    value = fmean(numbers)
    return value, value - low, high - value

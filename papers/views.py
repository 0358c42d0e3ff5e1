"""What the notebooks and reports show: runs step by step, tables, and charts.

Charts need matplotlib, from the extra `train`; it is imported when something is drawn.
"""

import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_core.documents import Document
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite

from crag.correction.strips import LOWEST
from crag.extras import require
from crag.papers.bench.experiments import ACCURACY, Experiment
from crag.papers.bench.summary import Line
from crag.papers.settings import PaperSettings
from crag.plain import shortened
from crag.reflection.cleaning import cleaned
from crag.settings import Settings
from crag.state import Critique, State, Strip, Thresholds, WebPage, known_action

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI, _SIZE = 130, (7.0, 4.0)
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which the colour-blind can tell apart."""
_GREY = "#595959"
_SPECIAL = re.compile(r"([\\`*_|<>\[\]$])")
Curves = Mapping[str, Sequence[tuple[float, float]]]
"""The points of each curve, by its name."""


class Picture:
    """A figure and its description, which is shown where pictures are not supported."""

    def __init__(self, figure: "Figure", says: str) -> None:
        self.figure, self.says = figure, says

    def __repr__(self) -> str:
        return self.says

    def png(self) -> bytes:
        """Return the picture as PNG, without date or program metadata."""
        drawn = io.BytesIO()
        self.figure.savefig(drawn, format="png", dpi=_DPI, metadata={"Software": None})
        return drawn.getvalue()

    def _repr_png_(self) -> tuple[bytes, dict[str, int | str]]:
        width = round(self.figure.get_figwidth() * _DPI / 2)
        return self.png(), {"width": width, "alt": self.says}


def draw(title: str, axes: tuple[str, str], curves: Curves, **marks: float) -> Picture:
    """Draw curves; `axes` are the names of both axes, `marks` are values of the first one.

    Raises:
        MissingPackageError: matplotlib is missing.
    """
    figure = _figure()
    plot = figure.add_subplot()
    for number, (name, points) in enumerate(curves.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        plot.plot(*zip(*sorted(points), strict=True), "o-", ms=3, color=colour, label=name)
    for name, value in marks.items():
        plot.axvline(value, color=_GREY, linestyle="--", label=f"{name} {value:+.2f}")
    plot.set(title=title, xlabel=axes[0], ylabel=axes[1])
    plot.grid(color="#DDDDDD")
    figure.legend(loc="outside lower center", ncols=4, fontsize=8)
    return Picture(figure, f"{title}: {axes[1]} by {axes[0]}")


def draw_curves(experiment: Experiment, lines: Sequence[Line], path: Path, accuracy: float) -> bool:
    """Write the first metric by what is varied as PNG, and say whether anything is.

    That is retrieval, of which the data as they are have this `accuracy`, or one number of a sweep.
    """
    swept = {name for one in experiment.sweep for name in one}
    varied = ACCURACY if any(line.condition for line in lines) else "".join(swept)
    curves: dict[str, list[tuple[float, float]]] = {}
    metric = next((name for line in lines for name, cell in line.cells.items() if cell), "")
    for line in lines:
        value = line.variant.settings.get(varied, line.condition.get(ACCURACY, accuracy))
        if (cell := line.cells.get(metric)) and isinstance(value, int | float):
            name = line.variant.name.removesuffix(f", {varied}={value}")
            curves.setdefault(name, []).append((value, cell.value))
    if varied != ACCURACY and len(swept) != 1:
        return False
    axes = varied.replace("_", " "), metric.replace("_", " ")
    path.write_bytes(draw(experiment.name, axes, curves).png())
    return True


def _figure(height: float = _SIZE[1]) -> "Figure":
    require("train", "drawing pictures", "matplotlib")
    from matplotlib.figure import Figure

    return Figure(figsize=(_SIZE[0], height), layout="constrained")


class Table:
    """Rows of text under a heading; shown as Markdown, so the viewer's own colours apply.

    Cells are plain text; markup is escaped. `bold` lists the indices of emphasised rows, `numeric`
    the columns that are aligned on the right.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        bold: Collection[int] = (),
        numeric: Collection[str] = (),
    ) -> None:
        rules = ["---:" if name in numeric else "---" for name in columns]
        lines = [list(columns), rules]
        for place, row in enumerate(rows):
            cells = [plain(f"{one:+.2f}" if isinstance(one, float) else str(one)) for one in row]
            cells = ["" if one is None else cell for one, cell in zip(row, cells, strict=True)]
            lines.append([f"**{c}**" if c and place in bold else c for c in cells])
        self.markdown = "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def __repr__(self) -> str:
        return self.markdown

    def _repr_markdown_(self) -> str:
        return self.markdown


def plain(text: str) -> str:
    """Escape text so that Markdown shows it unchanged, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;")


_TEXT, _CANDIDATE = 90, 70
_NUMBERS = ["IsRel", "IsSup", "IsUse", "sequence", "score"]


class Step(NamedTuple):
    """The update of one node."""

    node: str
    """Its name; in a subgraph with the subgraph's name first, as in ``web:search``."""
    update: Mapping[str, Any]


class Walk:
    """One run of a graph, node by node; a notebook shows it as a list of its steps."""

    def __init__(self, steps: list[Step], state: State) -> None:
        self.steps = steps
        self.state = state

    def __repr__(self) -> str:
        return " → ".join(step.node for step in self.steps)

    def _repr_markdown_(self) -> str:
        shown, lines = set[str](), list[str]()
        for number, step in enumerate(self.steps, start=1):
            new = [part for part in _written(step.update) if part not in shown]
            shown.update(new)
            lines += [f"**{number} · {step.node}**", *(new or ["*nothing new*"])]
        return "\n\n".join(lines)


def walk(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    question: str,
    settings: Mapping[str, object] | None = None,
) -> Walk:
    """Run a graph, and return every node's update and the final state.

    Parallel branches are listed one after the other, in the order of the graph's nodes, so the same
    run always looks the same.

    Raises:
        SettingsError: a setting is unknown or out of range.
    """
    context: Settings = PaperSettings.model_validate({**(settings or {})})
    stream = graph.stream(
        {"question": question}, context=context, stream_mode=["updates", "values"], subgraphs=True
    )
    steps, state, within = list[Step](), cast("State", {}), set[str]()
    for namespace, mode, chunk in cast("Any", stream):
        above = [name.partition(":")[0] for name in namespace]
        if mode == "updates":
            within.update(above)
            for node, update in chunk.items():
                values = (update or {}).items()
                plain = {key: v.value if isinstance(v, Overwrite) else v for key, v in values}
                steps.append(Step(":".join([*above, node]), plain))
        elif not namespace:
            state = chunk
    order = list(graph.nodes)
    steps = [step for step in steps if step.node not in within]  # Its nodes have the same updates.
    return Walk(sorted(steps, key=lambda step: order.index(step.node.partition(":")[0])), state)


def critique_table(critiques: Sequence[Critique]) -> Table:
    """List candidates in the order of their critiques: text, each critique, and the outcome.

    Candidates in the answer are bold. IsRel, IsSup and the sequence score are in [0, 1], IsUse is
    in [-1, 1]; a missing critique is empty.
    """
    scores = ("relevance", "support", "utility", "sequence", "total")
    rows = [
        (
            one["segment"] + 1,
            "none" if one["passage"] is None else one["passage"] + 1,
            shortened(cleaned(one["text"]), _CANDIDATE),
            *("" if one[name] is None else f"{one[name]:.2f}" for name in scores),
            one["why"],
        )
        for one in cast("Sequence[Mapping[str, Any]]", critiques)
    ]
    chosen = [place for place, one in enumerate(critiques) if one["chosen"]]
    columns = ["segment", "passage", "candidate", *_NUMBERS, "what became of it"]
    return Table(columns, rows, bold=chosen, numeric=_NUMBERS)


def _written(update: Mapping[str, Any]) -> list[str]:
    """Return an update as Markdown, one text for each non-empty key that is worth a look."""
    shown = {**update, **(update.get("reflection") or {})}
    return [f"`{key}` {show(shown[key])}" for key, show in _SHOWN.items() if shown.get(key)]


def _documents(documents: Sequence[Document]) -> str:
    rows = [(one.metadata.get("score"), str(one.metadata.get("title"))) for one in documents]
    best = max((score for score, _ in rows if score is not None), default=None)
    bold = [place for place, (score, _) in enumerate(rows) if score == best is not None]
    return "\n\n" + Table(["score", "document"], rows, bold=bold, numeric=["score"]).markdown


def _strips(strips: Sequence[Strip]) -> str:
    kept = [one for one in strips if one["kept"]]
    rows = [(one["score"], shortened(one["text"], _TEXT), one["source"]["title"]) for one in kept]
    reasons = Counter(one["reason"] for one in strips if not one["kept"])
    dropped = "".join(f", {number} dropped: {why}" for why, number in reasons.items() if why)
    head = f"of the {strips[0]['kind']}: {len(kept)} of {len(strips)} kept{dropped}"
    table = Table(["score", "kept strip", "of"], rows, numeric=["score"]).markdown
    return f"{head}\n\n{table}" if kept else head


def _pages(pages: Sequence[WebPage]) -> str:
    return "; ".join(f"{plain(one['title'])} ({one['status']})" for one in pages)


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "query": plain,
    "documents": _documents,
    "thresholds": lambda one: f"upper {one['upper']:.2f}, lower {one['lower']:.2f}",
    "action": lambda action: f"**{action}**",
    "strips": _strips,
    "pages": _pages,
    "choices": lambda choices: plain(f"{choices[-1]['action']}: {choices[-1]['why']}"),
    "passages": lambda passages: "; ".join(plain(one["title"]) for one in passages),
    "critiques": lambda critiques: f"\n\n{critique_table(critiques).markdown}",
    "answer": plain,
    "events": lambda events: plain("; ".join(f"{one['kind']}: {one['detail']}" for one in events)),
}


def draw_scores(state: State) -> Picture:
    """Draw the score of each document of a run against the thresholds, first at the top."""
    scores = [max(one.metadata["score"], LOWEST) for one in state["documents"]]
    names = [shortened(str(one.metadata.get("title")), 38) for one in state["documents"]]
    limits = state["thresholds"] or Thresholds(upper=0.0, lower=0.0)
    action = known_action(state["action"])
    best = max(scores, default=LOWEST)
    title = f"{action.capitalize()}: the best of {len(scores)} documents scores {best:+.2f}"
    figure = _figure(1.4 + 0.36 * len(scores))
    plot = figure.add_subplot(title=title, xlim=(-1.0, 1.0))
    colours = [_COLOURS[0] if score == best else _GREY for score in scores]
    plot.barh(range(len(scores)), [score + 1 for score in scores], left=-1, color=colours)
    for name, value in limits.items():
        plot.axvline(float(str(value)), color=_GREY, linestyle="--")
        plot.annotate(f"{name} {value:+.2f}", (float(str(value)), -0.6), ha="center")
    plot.set_yticks(range(len(names)), names)
    plot.invert_yaxis()
    about = ", ".join(f"{name} {value:.2f}" for name, value in limits.items())
    listed = "; ".join(f"{name} {score:+.2f}" for name, score in zip(names, scores, strict=True))
    return Picture(figure, f"{title} ({about}). {listed}".strip())

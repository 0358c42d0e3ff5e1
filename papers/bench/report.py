"""The report of an experiment in Markdown: our numbers, the paper's, and all failures."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from crag.papers.bench.examples import Loaded
from crag.papers.bench.experiments import Experiment
from crag.papers.bench.runner import RunResult
from crag.papers.bench.summary import Cell, Line, metrics_of
from crag.papers.metrics import METRICS
from crag.state import ACTIONS

_MOST_LISTED = 20
_MINUS = "−"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The header of a report: what was run, and on which data."""

    data: str
    """The file's name and the hash of its content."""
    loaded: Loaded
    parts: Mapping[str, str] = field(default_factory=dict)
    """Names of model, evaluator, web search and reflection, date and command."""


def render(
    experiment: Experiment, setup: Setup, lines: Sequence[Line], ended: RunResult, picture: str = ""
) -> str:
    """Return the report; `picture` is the name of a file in the same folder."""
    sections = [
        f"# {experiment.name}",
        experiment.about.strip(),
        _head(setup, ended),
        f"![{experiment.name}]({picture})" if picture else "",
        "## Results\n\n" + _caption(experiment, lines) + "\n\n" + results(experiment, lines),
        _differences(experiment, lines),
        _reproduced(lines),
        "## What became of the questions\n\n" + outcomes(lines),
        _problems(setup, lines, ended),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def results(experiment: Experiment, lines: Sequence[Line]) -> str:
    """Return the table of all metrics, with the paper's numbers in separate columns."""
    shown = _reported_metrics(experiment, lines)
    models = list(dict.fromkeys(model for line in lines for model in line.variant.paper))
    names = ["variant", *map(_spaced, shown), *(f"paper: {model}" for model in models)]
    rows = [
        [
            _title(line),
            *(_cell(name, line) for name in shown),
            *("-" if line.condition else f"{line.variant.paper.get(one, '-')}" for one in models),
        ]
        for line in lines
    ]
    return table(names, rows)


def outcomes(lines: Sequence[Line]) -> str:
    """Return the table of rows by outcome and action; a failed row has no value in any metric."""
    names = ("answered", "likely", "not_found", "failed")
    rows = [
        [
            _title(line),
            f"{line.rows}" + (f" ({line.seeds} seeds)" if line.seeds > 1 else ""),
            *(str(line.outcomes[name]) for name in names),
            " / ".join(str(line.actions[name]) for name in ACTIONS) if line.actions else "-",
        ]
        for line in lines
    ]
    return table(["variant", "rows", *map(_spaced, names), " / ".join(ACTIONS)], rows)


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(_safe(cell) for cell in line)} |" for line in lines)


def shown(metric: str, value: float) -> str:
    """Format a value in its metric's unit: shares in per cent."""
    match METRICS[metric].unit:
        case "share":
            return f"{100 * value:.1f} %"
        case "words" | "tokens":
            return f"{value:.0f}"
        case _:
            return f"{value:.2f}"


def _head(setup: Setup, ended: RunResult) -> str:
    refused = len(setup.loaded.refused)
    rows = [
        ["data", setup.data],
        ["questions", str(len(setup.loaded.examples))],
        ["refused rows of the data", str(refused) if refused else ""],
        ["rows finished", f"{ended.resumed + ended.answered} of {ended.units}"],
        *([name, value] for name, value in setup.parts.items()),
    ]
    return table(["", ""], [row for row in rows if row[1]])


def _reproduced(lines: Sequence[Line]) -> str:
    """Say of each row which part of the published setting it has, if the experiment does."""
    rows = {
        one.name: [one.name, one.reproduces, one.differs]
        for one in (line.variant for line in lines)
        if one.reproduces or one.differs
    }
    if not rows:
        return ""
    names = ["variant", "reproduces", "does not reproduce"]
    return "## What each row reproduces\n\n" + table(names, rows.values())


def _reported_metrics(experiment: Experiment, lines: Sequence[Line]) -> list[str]:
    """Return the metrics with a non-zero value somewhere, and the first one with any value."""
    named = _names(experiment, lines)
    first = [name for name in named if any(line.cells[name] for line in lines)][:1]
    return [
        name
        for name in named
        if name in first or any(cell and cell.value for cell in (one.cells[name] for one in lines))
    ]


def _names(experiment: Experiment, lines: Sequence[Line]) -> list[str]:
    return list(lines[0].cells) if lines else [one.name for one in metrics_of(experiment)]


def _caption(experiment: Experiment, lines: Sequence[Line]) -> str:
    text = "Ours with 95 % bootstrap intervals over questions."
    names, reported = _names(experiment, lines), _reported_metrics(experiment, lines)
    rest = [name for name in names if name not in reported]
    zero = [name for name in rest if any(line.cells[name] for line in lines)]
    if zero:
        text += f" 0 everywhere: {', '.join(map(_spaced, zero))}."
    if absent := [_spaced(name) + _need(name) for name in rest if name not in zero]:
        text += f" No row has a value: {', '.join(absent)}."
    if experiment.paper:
        measured = _spaced(experiment.paper_metric or names[0])
        text += (
            f" Paper: {experiment.paper}, {measured}. Unless model and data are those of "
            "the paper, only the directions of differences can be compared."
        )
    return text


def _need(metric: str) -> str:
    return f" (see {METRICS[metric].needs})" if METRICS[metric].needs else ""


def _differences(experiment: Experiment, lines: Sequence[Line]) -> str:
    compared = [line for line in lines if line.gaps]
    if not compared:
        return ""
    names = [
        name
        for name in _reported_metrics(experiment, lines)
        if any(name in line.gaps for line in compared)
    ]
    rows = [[_title(line), *(_gap(one, line) for one in names)] for line in compared]
    caption = (
        f"Question by question against `{experiment.baseline}` under the same condition, with "
        "paired 95 % bootstrap intervals; bold where the interval excludes zero."
    )
    return f"## Differences\n\n{caption}\n\n{table(['variant', *map(_spaced, names)], rows)}"


def _problems(setup: Setup, lines: Sequence[Line], ended: RunResult) -> str:
    errors: Counter[str] = sum((line.errors for line in lines), Counter())
    groups = {
        "Not run": [f"`{name}`: {why}" for name, why in ended.not_run.items()],
        "Failed rows": [f"{count} × {error}" for error, count in errors.most_common()],
        "Refused rows of the data": [f"{one.place}: {one.reason}" for one in setup.loaded.refused],
        "Notes on the data": setup.loaded.notes,
    }
    sections = []
    for title, entries in groups.items():
        listed = [f"- {entry}" for entry in entries[:_MOST_LISTED]]
        if (more := len(entries) - _MOST_LISTED) > 0:
            listed.append(f"- and {more} more")
        sections += ["\n".join([f"## {title}", "", *listed])] if entries else []
    return "\n\n".join(sections)


def _title(line: Line) -> str:
    told = [f"{_spaced(name)} {value:.0%}" for name, value in line.condition.items()]
    return ", ".join([line.variant.name, *told])


def _cell(metric: str, line: Line) -> str:
    return _written(metric, line.cells[metric], line.cells.values(), shown)


def _gap(metric: str, line: Line) -> str:
    gap = line.gaps.get(metric)
    text = _written(metric, gap, line.gaps.values(), _signed)
    return f"**{text}**" if gap is not None and gap.clear else text


def _written(
    metric: str,
    cell: Cell | None,
    others: Iterable[Cell | None],
    form: Callable[[str, float], str],
) -> str:
    """Write a mean with its interval, and with its questions where other metrics have more."""
    if cell is None:
        return "-"
    if cell.low is None or cell.high is None:
        return f"{form(metric, cell.value)} (no interval)"
    low, high = (form(metric, end).removesuffix(" %") for end in (cell.low, cell.high))
    text = f"{form(metric, cell.value)} ({low} to {high})"
    most = max(other.questions for other in others if other is not None)
    return text if cell.questions == most else f"{text}, {cell.questions} questions"


def _signed(metric: str, value: float) -> str:
    text = shown(metric, abs(value)).removesuffix(" %")
    if not float(text):
        return text
    return f"{'+' if value > 0 else _MINUS}{text}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _safe(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

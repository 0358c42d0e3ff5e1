"""The report of an experiment in Markdown: our numbers, the paper's, and all failures."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from crag.papers.bench.examples import Refused
from crag.papers.bench.experiments import Experiment
from crag.papers.bench.paired import Difference
from crag.papers.bench.runner import RunResult
from crag.papers.bench.summary import Line, metrics_of
from crag.papers.metrics import METRICS
from crag.plain import counted
from crag.state import ACTIONS

_MOST_LISTED = 20
_MINUS = "−"


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The header of a report: what was run, and on which data."""

    data: str
    """The file's name and the hash of its content."""
    examples: int
    refused: Sequence[Refused] = ()
    notes: Sequence[str] = ()
    parts: dict[str, str] = field(default_factory=dict)
    """Names of model, evaluator, web search and reflection."""
    date: str = ""
    command: str = ""


def render(
    experiment: Experiment,
    setup: Setup,
    lines: Sequence[Line],
    ended: RunResult,
    pictures: Sequence[str] = (),
) -> str:
    """Return the report; `pictures` are names of files in the same folder."""
    sections = [
        f"# {experiment.name}",
        experiment.about.strip(),
        _head(setup, ended),
        _stopped(ended),
        "\n".join(f"![{experiment.name}]({name})" for name in pictures),
        "## Results\n\n" + _caption(experiment, lines) + "\n\n" + results(experiment, lines),
        _differences(experiment, lines),
        _settings_told(lines),
        "## What became of the questions\n\n" + outcomes(lines),
        _problems(setup, lines, ended),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def results(experiment: Experiment, lines: Sequence[Line]) -> str:
    """Return the table of all metrics, with the paper's numbers in separate columns."""
    told = _reported_metrics(experiment, lines)
    models = list(dict.fromkeys(model for line in lines for model in line.variant.paper))
    heads = [_title(line) for line in lines]
    columns = [[_cell(name, line) for line in lines] for name in told]
    paper = [[_published(line, model) for line in lines] for model in models]
    names = ["variant", *map(_spaced, told), *(f"paper: {model}" for model in models)]
    return table(names, [list(row) for row in zip(heads, *columns, *paper, strict=True)])


def outcomes(lines: Sequence[Line]) -> str:
    """Return the table of rows by status and action; a failed row has no value in any metric."""
    names = ["variant", "rows", "answered", "abstained", "failed", " / ".join(ACTIONS)]
    return table(
        names,
        [
            [
                _title(line),
                f"{line.rows}" + (f" ({line.seeds} seeds)" if line.seeds > 1 else ""),
                *(str(line.statuses[name]) for name in ("answered", "abstained", "failed")),
                " / ".join(str(line.actions[name]) for name in ACTIONS) if line.actions else "-",
            ]
            for line in lines
        ],
    )


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(_safe(cell) for cell in line)} |" for line in lines)


def shown(metric: str, value: float) -> str:
    """Format a value in its metric's unit: shares in per cent."""
    match METRICS[metric].unit:
        case "share":
            return f"{100 * value:.1f} %"
        case "seconds":
            return f"{value:.2f}"
        case "dollars":
            return f"{value:.5f}"
        case "words" | "tokens":
            return f"{value:.0f}"
        case _:
            return f"{value:.2f}"


def _settings_told(lines: Sequence[Line]) -> str:
    """Say of each row which part of the published setting it has, if the experiment does."""
    told = {
        line.variant.name: [line.variant.name, line.variant.reproduces, line.variant.differs]
        for line in lines
        if line.variant.reproduces or line.variant.differs
    }
    if not told:
        return ""
    names = ["variant", "reproduces", "does not reproduce"]
    return "## What each row reproduces\n\n" + table(names, told.values())


def _head(setup: Setup, ended: RunResult) -> str:
    rows = [["data", setup.data], ["questions", str(setup.examples)]]
    rows += [["refused rows of the data", str(len(setup.refused))]] if setup.refused else []
    rows += [[name, value] for name, value in setup.parts.items() if value]
    finished = ended.resumed + ended.answered
    rows.append(["rows finished", f"{finished} of {ended.units}"])
    rows += [["date", setup.date]] if setup.date else []
    rows += [["command", f"`{setup.command}`"]] if setup.command else []
    return table(["", ""], rows)


def _stopped(ended: RunResult) -> str:
    if not ended.stopped:
        return ""
    return (
        f"**Stopped early: {ended.stopped}.** Missing: {counted(ended.left, 'row')}; the same "
        "command with a larger budget continues where this run ended. Do not compare variants with "
        "different rows."
    )


def _reported_metrics(experiment: Experiment, lines: Sequence[Line]) -> list[str]:
    """Return the metrics with a non-zero value somewhere, and the first one with any value."""
    named = _names(experiment, lines)
    first = [name for name in named if any(_value(line, name) is not None for line in lines)][:1]
    return [name for name in named if name in first or any(_value(line, name) for line in lines)]


def _names(experiment: Experiment, lines: Sequence[Line]) -> list[str]:
    return list(lines[0].cells) if lines else [one.name for one in metrics_of(experiment)]


def _with_need(metric: str) -> str:
    needs = METRICS[metric].needs
    return f"{_spaced(metric)} (see {needs})" if needs else _spaced(metric)


def _value(line: Line, metric: str) -> float | None:
    cell = line.cells[metric]
    return None if cell is None else cell.value


def _caption(experiment: Experiment, lines: Sequence[Line]) -> str:
    text = "Ours with 95 % bootstrap intervals over questions."
    told = _reported_metrics(experiment, lines)
    rest = [name for name in _names(experiment, lines) if name not in told]
    zero = [name for name in rest if any(_value(line, name) is not None for line in lines)]
    if zero:
        text += f" 0 everywhere: {', '.join(map(_spaced, zero))}."
    if absent := [name for name in rest if name not in zero]:
        text += f" No row has a value: {', '.join(map(_with_need, absent))}."
    if experiment.paper:
        measured = experiment.paper_metric or _names(experiment, lines)[0]
        text += (
            f" Paper: {experiment.paper}, {_spaced(measured)}. Unless model and data are those of "
            "the paper, only the directions of differences can be compared."
        )
    return text


def _differences(experiment: Experiment, lines: Sequence[Line]) -> str:
    compared = [line for line in lines if line.gaps]
    if not compared:
        return ""
    told = [
        name
        for name in _reported_metrics(experiment, lines)
        if any(name in line.gaps for line in compared)
    ]
    rows = [
        [_title(line), *(_gap(name, line.gaps.get(name), line) for name in told)]
        for line in compared
    ]
    caption = (
        f"Question by question against `{experiment.baseline}` under the same condition, with "
        "paired 95 % bootstrap intervals; bold where the interval excludes zero."
    )
    names = ["variant", *map(_spaced, told)]
    return f"## Differences\n\n{caption}\n\n{table(names, rows)}"


def _problems(setup: Setup, lines: Sequence[Line], ended: RunResult) -> str:
    errors: Counter[str] = sum((line.errors for line in lines), Counter())
    groups = [
        ("Not run", [f"`{name}`: {why}" for name, why in ended.not_run.items()]),
        ("Failed rows", [f"{count} × {error}" for error, count in errors.most_common()]),
        ("Refused rows of the data", [f"{one.place}: {one.reason}" for one in setup.refused]),
        ("Notes on the data", list(setup.notes)),
    ]
    sections = [_listed(title, entries) for title, entries in groups if entries]
    return "\n\n".join(sections)


def _listed(title: str, entries: Sequence[str]) -> str:
    more = len(entries) - _MOST_LISTED
    lines = [f"- {entry}" for entry in islice(entries, _MOST_LISTED)]
    return "\n".join([f"## {title}", "", *lines, *([f"- and {more} more"] if more > 0 else [])])


def _title(line: Line) -> str:
    told = [f"{_spaced(name)} {value:.0%}" for name, value in line.condition.items()]
    return ", ".join([line.variant.name, *told])


def _cell(metric: str, line: Line) -> str:
    cell = line.cells[metric]
    if cell is None:
        return "-"
    if cell.low is None or cell.high is None:
        return f"{shown(metric, cell.value)} (no interval)"
    low, high = (shown(metric, end).removesuffix(" %") for end in (cell.low, cell.high))
    text = f"{shown(metric, cell.value)} ({low} to {high})"
    most = max(other.questions for other in line.cells.values() if other is not None)
    return text if cell.questions == most else f"{text}, {cell.questions} questions"


def _gap(metric: str, gap: Difference | None, line: Line) -> str:
    if gap is None:
        return "-"
    mean, low, high = (_signed(metric, value) for value in gap)
    text = f"{mean} ({low} to {high})"
    missing = max(line.paired.values()) - line.paired[metric]
    told = f"**{text}**" if gap.clear else text
    return f"{told}, {line.paired[metric]} questions" if missing else told


def _signed(metric: str, value: float) -> str:
    text = shown(metric, abs(value)).removesuffix(" %")
    if not float(text):
        return text
    return f"{'+' if value > 0 else _MINUS}{text}"


def _published(line: Line, model: str) -> str:
    number = line.variant.paper.get(model)
    return "-" if number is None or line.condition else f"{number:g}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _safe(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

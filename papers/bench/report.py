"""The report of an experiment in Markdown: our numbers, the paper's, and all failures."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from crag.papers.bench.examples import Loaded
from crag.papers.bench.experiments import Experiment
from crag.papers.bench.runner import RunResult
from crag.papers.bench.summary import Cell, Line
from crag.papers.metrics import METRICS
from crag.state import ACTIONS

_MOST_LISTED = 20
_MINUS = "−"


def render(  # noqa: PLR0913, PLR0917 - what a report tells
    experiment: Experiment,
    about: Mapping[str, str],
    loaded: Loaded,
    lines: Sequence[Line],
    ended: RunResult,
    picture: str = "",
) -> str:
    """Return the report; `picture` is the name of a file in the same folder."""
    head = {
        **about,
        "questions": str(len(loaded.examples)),
        "rows finished": f"{ended.resumed + ended.answered} of {ended.units}",
    }
    sections = [
        f"# {experiment.name}",
        experiment.about.strip(),
        table(["", ""], [row for row in head.items() if row[1]]),
        f"![{experiment.name}]({picture})" if picture else "",
        "## Results\n\n" + _caption(experiment, lines) + "\n\n" + results(lines),
        _differences(experiment, lines),
        _reproduced(lines),
        "## What became of the questions\n\n" + outcomes(lines),
        *_problems(loaded, lines, ended),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def results(lines: Sequence[Line]) -> str:
    """Return the table of all metrics with a value, with the paper's numbers in columns apart."""
    shown = _measured(lines)
    models = list(dict.fromkeys(model for line in lines for model in line.variant.paper))
    names = ["variant", *map(_spaced, shown), *(f"paper: {model}" for model in models)]
    rows = [
        [
            _title(line),
            *(_written(name, line.cells[name], line) for name in shown),
            *("-" if line.condition else f"{line.variant.paper.get(one, '-')}" for one in models),
        ]
        for line in lines
    ]
    return table(names, rows)


def outcomes(lines: Sequence[Line]) -> str:
    """Return the table of rows by outcome and action; a failed row has no value in any metric."""
    names = ("answered", "likely", "not_found", "failed")
    rows = []
    for line in lines:
        found, actions = line.counts("outcome"), line.counts("action")
        told = " / ".join(str(actions[name]) for name in ACTIONS) if actions else "-"
        counts = [str(found[name]) for name in names]
        rows.append([_title(line), str(len(line.rows)), *counts, told])
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


def _measured(lines: Sequence[Line]) -> list[str]:
    """Return the metrics with a value somewhere."""
    names = lines[0].cells if lines else ()
    return [name for name in names if any(line.cells[name] for line in lines)]


def _caption(experiment: Experiment, lines: Sequence[Line]) -> str:
    text = "Ours with 95 % bootstrap intervals over questions."
    absent = [name for name in (lines[0].cells if lines else ()) if name not in _measured(lines)]
    if absent:
        needs = (f" (see {METRICS[name].needs})" if METRICS[name].needs else "" for name in absent)
        told = (_spaced(name) + need for name, need in zip(absent, needs, strict=True))
        text += f" No row has a value: {', '.join(told)}."
    if experiment.paper:
        measured = _spaced(experiment.paper_metric or next(iter(lines[0].cells)) if lines else "")
        text += (
            f" Paper: {experiment.paper}, {measured}. Unless model and data are those of "
            "the paper, only the directions of differences can be compared."
        )
    return text


def _differences(experiment: Experiment, lines: Sequence[Line]) -> str:
    compared = [line for line in lines if line.gaps]
    if not compared:
        return ""
    names = [one for one in _measured(lines) if any(one in line.gaps for line in compared)]
    rows = [[_title(line), *(_gap(name, line) for name in names)] for line in compared]
    caption = (
        f"Question by question against `{experiment.baseline}` under the same condition, with "
        "paired 95 % bootstrap intervals; bold where the interval excludes zero."
    )
    return f"## Differences\n\n{caption}\n\n{table(['variant', *map(_spaced, names)], rows)}"


def _problems(loaded: Loaded, lines: Sequence[Line], ended: RunResult) -> list[str]:
    errors: Counter[str] = sum((line.counts("error") for line in lines), Counter())
    groups = {
        "Not run": [f"`{name}`: {why}" for name, why in ended.not_run.items()],
        "Failed rows": [f"{count} × {error}" for error, count in errors.most_common()],
        "Refused rows of the data": [f"{one.place}: {one.reason}" for one in loaded.refused],
        "Notes on the data": loaded.notes,
    }
    sections = []
    for title, entries in groups.items():
        listed = [f"- {entry}" for entry in entries[:_MOST_LISTED]]
        if (more := len(entries) - _MOST_LISTED) > 0:
            listed.append(f"- and {more} more")
        sections += ["\n".join([f"## {title}", "", *listed])] if entries else []
    return sections


def _title(line: Line) -> str:
    told = [f"{_spaced(name)} {value:.0%}" for name, value in line.condition.items()]
    return ", ".join([line.variant.name, *told])


def _gap(metric: str, line: Line) -> str:
    gap = line.gaps.get(metric)
    text = _written(metric, gap, line, signed=True)
    return f"**{text}**" if gap is not None and gap.clear else text


def _written(metric: str, cell: Cell | None, line: Line, *, signed: bool = False) -> str:
    """Write a mean with its interval, and with its questions where it is not of all."""
    if cell is None:
        return "-"
    form = _signed if signed else shown
    if cell.low is None or cell.high is None:
        return f"{form(metric, cell.value)} (no interval)"
    low, high = (form(metric, end).removesuffix(" %") for end in (cell.low, cell.high))
    text = f"{form(metric, cell.value)} ({low} to {high})"
    whole = cell.questions == len({row["id"] for row in line.rows})
    return text if whole else f"{text}, {cell.questions} questions"


def _signed(metric: str, value: float) -> str:
    text = shown(metric, abs(value)).removesuffix(" %")
    if not float(text):
        return text
    return f"{'+' if value > 0 else _MINUS}{text}"


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def _safe(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())

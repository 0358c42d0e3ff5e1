"""One run of an experiment, from its file to its report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from crag.errors import DataError
from crag.papers.bench.examples import Loaded
from crag.papers.bench.experiments import plan, read_experiment, retrieval_accuracy
from crag.papers.bench.report import render
from crag.papers.bench.resources import Judges, Resources, load_judges, load_resources
from crag.papers.bench.runner import CONCURRENCY, Answerer, RowFile, RunResult, run
from crag.papers.bench.summary import Line, metrics_of, summarise
from crag.papers.loading.read import load_examples, sample
from crag.papers.loading.records import file_digest
from crag.papers.views import draw_curves
from crag.runtime.environment import Environment

ROWS, REPORT = "rows.jsonl", "report.md"


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The user's options for one run."""

    experiment: str
    """A table of a file, as ``FILE:TABLE``."""
    data: Path
    output: Path
    limit: int | None = None
    seed: int = 0
    """Seed of the sample that `limit` draws, and of the intervals."""
    settings: Mapping[str, object] = field(default_factory=dict)
    web: tuple[Path, ...] = ()
    concurrency: int = CONCURRENCY
    judges: Judges = field(default_factory=Judges)
    about: Mapping[str, str] = field(default_factory=dict)
    """Told at the head of the report, such as the command."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a run."""

    loaded: Loaded
    lines: list[Line]
    ended: RunResult
    report: Path


def benchmark(
    options: BenchOptions, progress: Callable[[int, int, str], None] | None = None
) -> Outcome:
    """Run the unfinished units, and write the report of all rows.

    Raises:
        CragError: the experiment, the data or a part cannot be used; raised before any call.
    """
    experiment = read_experiment(options.experiment, options.settings)
    metrics_of(experiment)
    loaded = load_examples(options.data, experiment.task)
    if options.limit is not None:
        loaded = sample(loaded, options.limit, options.seed)
    if not loaded.examples:
        raise DataError(options.data, f"no row is left; {len(loaded.refused)} were refused")
    judged = load_judges(options.judges, loaded.examples, Environment())
    answerer = Answerer(
        load_resources(Environment(), once=not experiment.timed, corpus=options.web)
    )
    units = list(plan(experiment, loaded.examples))
    concurrency = 1 if experiment.timed else options.concurrency
    with RowFile(options.output / ROWS) as file:
        ended = run(units, file, answerer, concurrency=concurrency, progress=progress)
        keys = {answerer.key(unit) for unit in units}
        rows = {key: row for key, row in file.rows.items() if key in keys}
    lines = summarise(experiment, loaded.examples, rows, options.seed, judged)
    report = options.output / REPORT
    picture = report.with_suffix(".png")
    drawn = draw_curves(experiment, lines, picture, retrieval_accuracy(loaded.examples))
    about = _about(options, answerer.resources)
    text = render(experiment, about, loaded, lines, ended, picture.name if drawn else "")
    report.write_text(text, encoding="utf-8")
    return Outcome(loaded=loaded, lines=lines, ended=ended, report=report)


def _about(options: BenchOptions, resources: Resources) -> dict[str, str]:
    digest = f" (SHA-256 {file_digest(options.data)[:12]}…)" if options.data.is_file() else ""
    judges = options.judges
    return {
        "data": f"{options.data.name}{digest}",
        "parts": resources.named(),
        "citations judged by": judges.entailment,
        "MAUVE by": judges.mauve,
        "facts judged by": judges.facts,
        "facts checked against": " and ".join(path.name for path in judges.pages),
        "program": f"crag {version('corrective-rag')}",
        **options.about,
    }

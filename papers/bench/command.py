"""`crag bench`: one run of an experiment, from its file to its report."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from crag.errors import DataError
from crag.papers.bench.answering import Answerer, Resources
from crag.papers.bench.budget import Budget
from crag.papers.bench.charts import require_matplotlib
from crag.papers.bench.examples import Loaded
from crag.papers.bench.experiments import Experiment, ThresholdSource, read_experiment
from crag.papers.bench.judges import Judges, load_judges, topics_of
from crag.papers.bench.pictures import draw
from crag.papers.bench.report import Setup, render
from crag.papers.bench.resources import RunConfig, load_resources
from crag.papers.bench.rows import RowFile
from crag.papers.bench.runner import (
    DEFAULT_CONCURRENCY,
    ProgressCallback,
    RunResult,
    in_process,
    in_workers,
    remaining_units,
    run,
)
from crag.papers.bench.summary import Line, metrics_of, summarise
from crag.papers.bench.units import plan, retrieval_accuracy
from crag.papers.loading.contamination import kept_apart
from crag.papers.loading.detect import load_examples, sample
from crag.papers.metrics.fact_judge import Pages
from crag.runtime.environment import Environment

ROWS, CACHE, REPORT = "rows.jsonl", "cache.sqlite", "report.md"


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The user's options for one run."""

    experiment: Path
    data: Path
    output: Path
    format: str = "auto"
    as_published: bool = False
    """Read a folder of the CRAG repository as the official program does, with its faults."""
    disarm: bool = True
    """Disarm what could act in a prompt, as everywhere; the papers' programs do not."""
    limit: int | None = None
    seed: int = 0
    """Seed of the sample that `limit` draws, and of the intervals."""
    settings: Mapping[str, object] = field(default_factory=dict)
    thresholds: ThresholdSource = "task"
    """Whose thresholds count where the experiment sets none."""
    web: tuple[Path, ...] = ()
    cache: Path | None = None
    """None: a file in the output folder."""
    report: Path | None = None
    """None: in the output folder. Pictures are saved next to it."""
    concurrency: int = DEFAULT_CONCURRENCY
    ray: bool = False
    again: bool = False
    budget: Budget = field(default_factory=Budget)
    judges: Judges = field(default_factory=Judges)
    trained_on: tuple[Path, ...] = ()
    """Files that the evaluator was trained on; their questions are refused."""
    date: str = ""
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a run."""

    experiment: Experiment
    loaded: Loaded
    lines: Sequence[Line]
    ended: RunResult
    rows: Path
    report: Path
    pictures: Sequence[Path]


def benchmark(options: BenchOptions, progress: ProgressCallback | None = None) -> Outcome:
    """Run the unfinished units, and write the report of all rows.

    Raises:
        CragError: the experiment, the data or a part cannot be used; raised before any call.
    """
    require_matplotlib("train")
    experiment = read_experiment(options.experiment, options.settings, options.thresholds)
    metrics_of(experiment)
    loaded = _loaded(options, experiment)
    config = RunConfig(
        cache=options.cache or options.output / CACHE,
        scores=not experiment.timed,
        corpus=options.web,
        budget=options.budget,
        disarm=options.disarm,
    )
    pages = Pages(options.judges.pages, topics_of(loaded.examples))
    report = options.report or options.output / REPORT
    _require_writable(report, (options.output / ROWS, options.cache or options.output / CACHE))
    judged = load_judges(options.judges, pages, Environment(), config.cache)
    loaded = _without_pages(loaded, pages) if options.judges.pages else loaded
    answerer = Answerer(load_resources(Environment(), config))
    units = list(plan(experiment, loaded.examples))
    concurrency = 1 if experiment.timed else options.concurrency
    with RowFile(options.output / ROWS) as file:
        todo = remaining_units(units, file, answerer, again=options.again)
        answers = (
            in_workers(config, concurrency) if options.ray else in_process(answerer, concurrency)
        )
        ended = run(todo, file, answers, progress)
        keys = {unit.key(answerer.resources.named(unit)) for unit in units}
        rows = {key: row for key, row in file.rows.items() if key in keys}
    lines = summarise(experiment, loaded.examples, rows, options.seed, judged)
    accuracy = retrieval_accuracy(loaded.examples)
    picture = draw(experiment, lines, report.with_suffix(".png"), accuracy)
    drawn = [picture] if picture is not None else []
    setup = _setup(options, loaded, answerer.resources, metrics_of(experiment, judged))
    text = render(experiment, setup, lines, ended, [one.name for one in drawn])
    report.write_text(text, encoding="utf-8")
    return Outcome(
        experiment=experiment, loaded=loaded, lines=lines, ended=ended,
        rows=options.output / ROWS, report=report, pictures=drawn,
    )  # fmt: skip


def _require_writable(report: Path, others: Sequence[Path]) -> None:
    """Make the file if it is not there, before anything is asked and perhaps paid for.

    Raises:
        DataError: it cannot be written to, or would take the place of its picture or of `others`.
    """
    if report.resolve() in {other.resolve() for other in others}:
        raise DataError(report, "rows or replies are kept in this file: choose another --report")
    if report.suffix == ".png":
        raise DataError(report, "the picture has this name: end that of the report with .md")
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.open("a").close()
    except OSError as error:
        raise DataError(report, f"the report cannot be written: {error.strerror}") from error


def _loaded(options: BenchOptions, experiment: Experiment) -> Loaded:
    loaded = load_examples(
        options.data, experiment.task,
        format=options.format,  # type: ignore[arg-type]
        as_published=options.as_published,
    )  # fmt: skip
    loaded = kept_apart(loaded, options.trained_on)
    if options.limit is not None:
        loaded = sample(loaded, options.limit, options.seed)
    if not loaded.examples:
        raise DataError(options.data, f"no row is left; {len(loaded.refused)} were refused")
    return loaded


def _without_pages(loaded: Loaded, pages: Pages) -> Loaded:
    lacking = [topic for topic in topics_of(loaded.examples) if topic not in pages]
    note = f"without a page in --fact-pages, so their facts have no judge: {', '.join(lacking)}"
    return loaded._replace(notes=[*loaded.notes, note]) if lacking else loaded


def _setup(
    options: BenchOptions, loaded: Loaded, resources: Resources, metrics: Sequence[Any]
) -> Setup:
    packages = sorted({one.package for one in metrics if one.package})
    return Setup(
        data=f"{options.data.name}{_digest(options.data)}",
        examples=len(loaded.examples),
        refused=loaded.refused,
        notes=loaded.notes,
        parts={
            "answers": resources.model,
            "prompts": _prompts(resources),
            "evaluator": resources.identify(resources.evaluator),
            "web": resources.web or "none",
            "reflection": resources.identify(resources.reflection),
            "texts in prompts": "disarmed" if resources.disarm else "as they are, not disarmed",
            "citations judged by": options.judges.entailment,
            "MAUVE by": options.judges.mauve,
            "facts judged by": options.judges.facts,
            "facts checked against": " and ".join(path.name for path in options.judges.pages),
            "program": f"crag {version('corrective-rag')}, source {resources.program}",
            "optional packages": ", ".join(packages),
        },
        date=options.date,
        command=options.command,
    )


def _prompts(resources: Resources) -> str:
    identity = resources.parts.prompts.identity
    return f"{resources.parts.prompts!r}, {identity}" if identity else "packaged: our own wording"


def _digest(path: Path) -> str:
    if not path.is_file():
        return ""
    return f" (SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}…)"

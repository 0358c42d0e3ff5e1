"""`crag bench`: one run of an experiment, from its file to its report."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from crag.errors import DataError
from crag.papers.bench.examples import Loaded
from crag.papers.bench.experiments import (
    Experiment,
    ThresholdSource,
    plan,
    read_experiment,
    retrieval_accuracy,
)
from crag.papers.bench.pictures import draw, require_matplotlib
from crag.papers.bench.report import Setup, render
from crag.papers.bench.resources import Judges, Resources, load_judges, load_resources, topics_of
from crag.papers.bench.runner import CONCURRENCY, Answerer, RowFile, RunResult, run
from crag.papers.bench.summary import Line, metrics_of, summarise
from crag.papers.loading.read import kept_apart, load_examples, sample
from crag.papers.metrics import Metric
from crag.papers.metrics.factscore import Pages
from crag.runtime.environment import Environment

ROWS, CACHE, REPORT = "rows.jsonl", "cache.sqlite", "report.md"


@dataclass(frozen=True, kw_only=True)
class BenchOptions:
    """The user's options for one run."""

    experiment: Path
    data: Path
    output: Path
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
    concurrency: int = CONCURRENCY
    again: bool = False
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
    picture: Path | None


def benchmark(
    options: BenchOptions, progress: Callable[[int, int, str], None] | None = None
) -> Outcome:
    """Run the unfinished units, and write the report of all rows.

    Raises:
        CragError: the experiment, the data or a part cannot be used; raised before any call.
    """
    require_matplotlib()
    experiment = read_experiment(options.experiment, options.settings, options.thresholds)
    metrics_of(experiment)
    loaded = _loaded(options, experiment)
    cache, report = options.cache or options.output / CACHE, options.output / REPORT
    topics = topics_of(loaded.examples)
    pages = Pages(options.judges.pages, topics)
    judged = load_judges(options.judges, pages, Environment(), cache)
    lacking = [one for one in topics if one not in pages] if options.judges.pages else []
    if lacking:
        note = "without a page in --fact-pages, so their facts have no judge: "
        loaded = loaded._replace(notes=[*loaded.notes, note + ", ".join(lacking)])
    answerer = Answerer(
        load_resources(
            Environment(), cached_in=cache, scores=not experiment.timed, corpus=options.web,
            disarm=options.disarm,
        )
    )  # fmt: skip
    units = list(plan(experiment, loaded.examples))
    concurrency = 1 if experiment.timed else options.concurrency
    with RowFile(options.output / ROWS) as file:
        ended = run(
            units, file, answerer,
            again=options.again, concurrency=concurrency, progress=progress,
        )  # fmt: skip
        keys = {answerer.key(unit) for unit in units}
        rows = {key: row for key, row in file.rows.items() if key in keys}
    lines = summarise(experiment, loaded.examples, rows, options.seed, judged)
    accuracy = retrieval_accuracy(loaded.examples)
    picture = draw(experiment, lines, report.with_suffix(".png"), accuracy)
    about = _about(options, answerer.resources, metrics_of(experiment, judged))
    setup = Setup(data=f"{options.data.name}{_digest(options.data)}", loaded=loaded, parts=about)
    text = render(experiment, setup, lines, ended, picture.name if picture else "")
    report.write_text(text, encoding="utf-8")
    return Outcome(
        experiment=experiment, loaded=loaded, lines=lines, ended=ended,
        rows=options.output / ROWS, report=report, picture=picture,
    )  # fmt: skip


def _loaded(options: BenchOptions, experiment: Experiment) -> Loaded:
    loaded = load_examples(options.data, experiment.task, as_published=options.as_published)
    loaded = kept_apart(loaded, options.trained_on)
    if options.limit is not None:
        loaded = sample(loaded, options.limit, options.seed)
    if not loaded.examples:
        raise DataError(options.data, f"no row is left; {len(loaded.refused)} were refused")
    return loaded


def _about(
    options: BenchOptions, resources: Resources, metrics: Sequence[Metric]
) -> dict[str, str]:
    prompts = resources.parts.prompts
    own = f"{prompts!r}, {prompts.identity}" if prompts.identity else "packaged: our own wording"
    return {
        "answers": resources.model,
        "prompts": own,
        "evaluator": resources.identify(resources.evaluator),
        "web": resources.web or "none",
        "reflection": resources.identify(resources.reflection),
        "texts in prompts": "disarmed" if resources.disarm else "as they are, not disarmed",
        "citations judged by": options.judges.entailment,
        "MAUVE by": options.judges.mauve,
        "facts judged by": options.judges.facts,
        "facts checked against": " and ".join(path.name for path in options.judges.pages),
        "program": f"crag {version('corrective-rag')}, source {resources.program}",
        "optional packages": ", ".join(sorted({one.package for one in metrics if one.package})),
        "date": options.date,
        "command": f"`{options.command}`" if options.command else "",
    }


def _digest(path: Path) -> str:
    if not path.is_file():
        return ""
    return f" (SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}…)"

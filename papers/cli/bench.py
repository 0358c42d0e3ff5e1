"""`crag bench`: run an experiment, or resume it, and write its report."""

import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from crag.cli.app import app
from crag.cli.terminal import SOME_FAILED, assigned, environment, progress_bar, safe, say
from crag.errors import DataError
from crag.papers.cli.command import ConcurrencyOption, command
from crag.plain import counted


@command(
    app,
    "crag bench experiment.toml --data questions.jsonl --output results",
    "crag bench papers/tables/main.toml:popqa --data questions.jsonl --output results --limit 50",
    extra="train",
)
def bench(  # noqa: PLR0913, PLR0917 - one parameter for each option
    experiment: Annotated[
        str, typer.Argument(metavar="FILE:TABLE", help="A table of a TOML file: see papers/tables.")
    ],
    data: Annotated[Path, typer.Option(help="File of questions, or a published folder.")],
    output: Annotated[Path, typer.Option(help="Folder of rows and report.")],
    limit: Annotated[
        int | None, typer.Option(min=1, help="Draw this many questions.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of that draw and of the intervals.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of every variant."),
    ] = None,
    web: Annotated[
        list[Path] | None,
        typer.Option(help="Search this JSONL of texts instead of the web; may be repeated."),
    ] = None,
    concurrency: ConcurrencyOption = 4,
    entailment: Annotated[
        str, typer.Option(metavar="MODEL", help="Judges citations: a hub name or folder.")
    ] = "",
    mauve: Annotated[
        str, typer.Option(metavar="MODEL", help="Computes MAUVE, such as gpt2-large.")
    ] = "",
    fact_judge: Annotated[
        str, typer.Option(metavar="MODEL", help="Chat model that computes FActScore.")
    ] = "",
    fact_pages: Annotated[
        list[Path] | None,
        typer.Option(help="JSONL of titles and texts to check facts against."),
    ] = None,
) -> None:
    """Run an experiment on data; run the same command again to resume it and retry what failed.

    The exit code is 1 where rows have failed, or none could be run.
    """
    from crag.papers.bench.experiments import plan, read_experiment, retrieval_accuracy
    from crag.papers.bench.report import render, results
    from crag.papers.bench.resources import load_judges, load_resources
    from crag.papers.bench.runner import Answerer, RowFile, run
    from crag.papers.bench.summary import metrics_of, summarise
    from crag.papers.files import file_digest
    from crag.papers.loading import load_examples, sample
    from crag.papers.views import draw_curves

    table = read_experiment(experiment, assigned(settings))
    metrics_of(table)
    loaded = load_examples(data, table.task)
    if limit is not None:
        loaded = sample(loaded, limit, seed)
    if not loaded.examples:
        raise DataError(data, f"no row is left; {len(loaded.refused)} were refused")
    place, pages = environment(), fact_pages or []
    judged = load_judges(place, loaded.examples, entailment, mauve, fact_judge, pages)
    answerer = Answerer(load_resources(place, once=not table.timed, corpus=web or ()))
    units = list(plan(table, loaded.examples))
    with RowFile(output / "rows.jsonl") as file, progress_bar("reading", quiet=False) as advance:
        at_once = 1 if table.timed else concurrency
        ended = run(units, file, answerer, concurrency=at_once, progress=advance)
        keys = {answerer.key(unit) for unit in units}
        rows = {key: row for key, row in file.rows.items() if key in keys}
    lines = summarise(table, loaded.examples, rows, seed, judged)
    report = output / "report.md"
    picture = report.with_suffix(".png")
    drawn = draw_curves(table, lines, picture, retrieval_accuracy(loaded.examples))
    digest = f" (SHA-256 {file_digest(data)[:12]}…)" if data.is_file() else ""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    about = {
        "data": f"{data.name}{digest}",
        "parts": answerer.resources.named(),
        "citations judged by": entailment,
        "MAUVE by": mauve,
        "facts judged by": fact_judge,
        "facts checked against": " and ".join(path.name for path in pages),
        "program": f"crag {version('corrective-rag')}",
        "date": datetime.now(tz=UTC).date().isoformat(),
        "command": f"`{shlex.join(['crag', *words])}`",  # Without local folders or keys.
    }
    text = render(table, about, loaded, lines, ended, picture.name if drawn else "")
    report.write_text(text, encoding="utf-8")
    say(safe(results(lines)))
    written = counted(ended.answered, "row")
    say(f"\n{written} written, {ended.resumed} were there, {ended.failed} failed")
    if refused := len(loaded.refused):
        say(f"[yellow]refused: {counted(refused, 'row')} of the data[/]: the report says why")
    for name, why in ended.not_run.items():
        say(f"[yellow]not run:[/] {safe(name)}: {safe(why)}")
    say(f"report: {safe(report)}")
    if ended.failed or not ended.answered + ended.resumed:
        raise typer.Exit(SOME_FAILED)

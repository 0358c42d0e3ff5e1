"""`crag bench`: run an experiment, or resume it, and write its report."""

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from crag.cli import app
from crag.cli.terminal import SOME_FAILED, assigned, progress_bar, safe, say
from crag.papers.cli.command import (
    ConcurrencyOption,
    command,
)
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
    from crag.papers.bench.command import BenchOptions, benchmark
    from crag.papers.bench.report import results
    from crag.papers.bench.resources import Judges

    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    options = BenchOptions(
        experiment=experiment, data=data, output=output, limit=limit, seed=seed,
        settings=assigned(settings), web=tuple(web or ()), concurrency=concurrency,
        judges=Judges(
            entailment=entailment, mauve=mauve, facts=fact_judge, pages=tuple(fact_pages or ())
        ),
        about={
            "date": datetime.now(tz=UTC).date().isoformat(),
            "command": f"`{shlex.join(['crag', *words])}`",  # Without local folders or keys.
        },
    )  # fmt: skip
    with progress_bar("reading", quiet=False) as advance:
        outcome = benchmark(options, advance)
    ended = outcome.ended
    say(safe(results(outcome.lines)))
    written = counted(ended.answered, "row")
    say(f"\n{written} written, {ended.resumed} were there, {ended.failed} failed")
    if refused := len(outcome.loaded.refused):
        say(f"[yellow]refused: {counted(refused, 'row')} of the data[/]: the report says why")
    for name, why in ended.not_run.items():
        say(f"[yellow]not run:[/] {safe(name)}: {safe(why)}")
    say(f"report: {safe(outcome.report)}")
    if ended.failed or not ended.answered + ended.resumed:
        raise typer.Exit(SOME_FAILED)

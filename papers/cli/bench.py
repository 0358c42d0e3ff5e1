"""`crag bench`: run an experiment, or resume it, and write its report."""

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from crag.cli import app
from crag.cli.options import JsonOption
from crag.cli.terminal import (
    SOME_FAILED,
    assigned,
    print_json,
    progress_bar,
    safe,
    say,
)
from crag.papers.cli.command import command
from crag.papers.cli.options import ConcurrencyOption
from crag.plain import counted

if TYPE_CHECKING:
    from crag.papers.bench.command import Outcome


@command(
    app,
    "crag bench experiment.toml --data questions.jsonl --output results",
    "crag bench experiment.toml --data questions.jsonl --output results --limit 50 --seed 1",
    extra="train",
    files=("rows.jsonl", "cache.sqlite", "report.md"),
)
def bench(  # noqa: PLR0913, PLR0917 - one parameter for each option
    experiment: Annotated[Path, typer.Argument(help="A TOML file: see papers/tables.")],
    data: Annotated[Path, typer.Option(help="File of questions, or a published folder.")],
    output: Annotated[Path, typer.Option(help="Folder of rows, cache and report.")],
    as_published: Annotated[
        bool,
        typer.Option("--as-published", help="Read a published folder with its faults, unrepaired."),
    ] = False,
    disarm: Annotated[
        bool,
        typer.Option("--disarm/--no-disarm", help="Off: texts enter prompts as the papers' do."),
    ] = True,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Draw this many questions.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of that draw and of the intervals.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of every variant."),
    ] = None,
    thresholds: Annotated[
        Literal["task", "evaluator"],
        typer.Option(help="Those of the task belong to the paper's T5; of any other: evaluator."),
    ] = "task",
    web: Annotated[
        list[Path] | None,
        typer.Option(help="Search this JSONL of texts instead of the web; may be repeated."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Default: cache.sqlite in --output.", show_default=False),
    ] = None,
    concurrency: ConcurrencyOption = 4,
    again: Annotated[bool, typer.Option("--again", help="Retry failed rows once.")] = False,
    trained_on: Annotated[
        list[Path] | None,
        typer.Option(help="Refuse questions the evaluator was trained on; may be repeated."),
    ] = None,
    entailment: Annotated[
        str, typer.Option(metavar="MODEL", help="Judges citations: a hub name or folder.")
    ] = "",
    mauve: Annotated[
        str, typer.Option(metavar="MODEL", help="Computes MAUVE, such as gpt2-large.")
    ] = "",
    fact_judge: Annotated[
        str, typer.Option(metavar="MODEL", help="Chat model that computes FActScore.")
    ] = "",
    fact_judge_url: Annotated[
        str, typer.Option(metavar="URL", help="Where that model is. Default: OPENAI_BASE_URL.")
    ] = "",
    fact_pages: Annotated[
        list[Path] | None,
        typer.Option(help="JSONL of titles and texts to check facts against."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment on data; run the same command again to resume it.

    The exit code is 1 where rows have failed, or none could be run.
    """
    from crag.papers.bench.command import BenchOptions, benchmark
    from crag.papers.bench.resources import Judges

    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    options = BenchOptions(
        experiment=experiment, data=data, output=output, limit=limit, seed=seed,
        as_published=as_published, disarm=disarm, settings=assigned(settings),
        thresholds=thresholds, web=tuple(web or ()), cache=cache, concurrency=concurrency,
        again=again, trained_on=tuple(trained_on or ()),
        judges=Judges(
            entailment=entailment, mauve=mauve, facts=fact_judge, facts_url=fact_judge_url,
            pages=tuple(fact_pages or ()),
        ),
        date=datetime.now(tz=UTC).date().isoformat(),
        command=shlex.join(["crag", *words]),  # Without local folders; it never contains keys.
    )  # fmt: skip
    with progress_bar("reading", quiet=as_json) as advance:
        outcome = benchmark(options, advance)
    ended = outcome.ended
    if as_json:
        print_json(_plain(outcome))
    else:
        _report(outcome)
    if ended.failed or not ended.answered + ended.resumed:
        raise typer.Exit(SOME_FAILED)


def _report(outcome: "Outcome") -> None:
    from crag.papers.bench.report import results

    ended = outcome.ended
    say(safe(results(outcome.experiment, outcome.lines)))
    written = counted(ended.answered, "row")
    say(f"\n{written} written, {ended.resumed} were there, {ended.failed} failed")
    if ended.failed:
        say("[yellow]failed rows have no value:[/] the report says why; --again tries them again")
    if refused := len(outcome.loaded.refused):
        say(f"[yellow]refused: {counted(refused, 'row')} of the data[/]: the report says why")
    for name, why in ended.not_run.items():
        say(f"[yellow]not run:[/] {safe(name)}: {safe(why)}")
    say(f"report: {safe(outcome.report)}")


def _plain(outcome: "Outcome") -> dict[str, Any]:
    """Return the JSON for scripts: every number of the report, and the paths of its files."""
    ended = outcome.ended
    return {
        "experiment": outcome.experiment.name,
        "questions": len(outcome.loaded.examples),
        "refused": [one._asdict() for one in outcome.loaded.refused],
        "notes": outcome.loaded.notes,
        "rows": {"planned": ended.units, "written": ended.answered, "resumed": ended.resumed,
                 "failed": ended.failed},
        "not_run": ended.not_run,
        "variants": [
            {
                "name": line.variant.name,
                "condition": line.condition,
                "metrics": {name: cell and cell._asdict() for name, cell in line.cells.items()},
                "differences": {name: gap._asdict() for name, gap in line.gaps.items()},
                "outcomes": dict(line.outcomes),
                "actions": dict(line.actions),
                "paper": line.variant.paper,
            }
            for line in outcome.lines
        ],
        "files": {"rows": str(outcome.rows), "report": str(outcome.report),
                  "picture": str(outcome.picture or "")},
    }  # fmt: skip

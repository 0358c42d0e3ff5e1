"""`crag bench`: run an experiment, or resume it, and write its report."""

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from crag.papers.experiments.command import BenchOptions, Outcome


def bench(  # noqa: PLR0913, PLR0917 - one parameter for each option
    experiment: Annotated[Path, typer.Argument(help="A TOML file: see papers/tables.")],
    data: Annotated[Path, typer.Option(help="File of questions, or a published folder.")],
    output: Annotated[Path, typer.Option(help="Folder of rows, cache and report.")],
    form: Annotated[
        str, typer.Option("--format", help="auto, self-rag, crag, popqa, alce or ours.")
    ] = "auto",
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
    report: Annotated[
        Path | None, typer.Option(help="Default: report.md in --output.", show_default=False)
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Default: cache.sqlite in --output.", show_default=False),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Questions at the same time.")] = 4,
    ray: Annotated[
        bool, typer.Option("--ray", help="Answer in Ray workers; RAY_ADDRESS names a cluster.")
    ] = False,
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
    max_calls: Annotated[
        int | None, typer.Option(min=0, help="Most calls of the chat model.", show_default=False)
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=0, help="Most tokens, in and out.", show_default=False)
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Needs --prices.", show_default=False)
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(min=0, help="Start no row later.", show_default=False)
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option(metavar="IN,OUT", help="For a million tokens.", show_default=False),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Run an experiment on data; run the same command again to resume it."""
    from crag.asking.budget import Budget, prices_from_text
    from crag.cli.terminal import assigned
    from crag.papers.experiments.command import BenchOptions
    from crag.papers.experiments.judges import Judges

    budget = Budget(
        calls=max_calls, tokens=max_tokens, cost=max_cost, seconds=max_seconds,
        prices=prices_from_text(prices),
    )  # fmt: skip
    options = BenchOptions(
        experiment=experiment, data=data, output=output, format=form, limit=limit, seed=seed,
        settings=assigned(settings or []), thresholds=thresholds, web=tuple(web or ()),
        cache=cache, report=report,
        concurrency=concurrency, ray=ray, again=again, budget=budget,
        trained_on=tuple(trained_on or ()),
        judges=Judges(
            entailment=entailment, mauve=mauve, facts=fact_judge, facts_url=fact_judge_url,
            pages=tuple(fact_pages or ()),
        ),
        date=datetime.now(tz=UTC).date().isoformat(), command=_command(),
    )  # fmt: skip
    run(options, as_json=as_json)


def run(options: "BenchOptions", *, as_json: bool) -> None:
    """Run with a progress bar on standard error, and print where the report is."""
    from rich.console import Console
    from rich.markup import escape

    from crag.cli.terminal import print_json, progress_bar
    from crag.papers.experiments.command import benchmark
    from crag.papers.experiments.report import results

    with progress_bar("reading", quiet=as_json) as advance:
        outcome = benchmark(options, advance)
    if as_json:
        print_json(plain(outcome))
        return

    console = Console(highlight=False)
    console.print(escape(results(outcome.experiment, outcome.lines)), soft_wrap=True)
    ended = outcome.ended
    told = f"{ended.answered} rows written, {ended.resumed} were there, {ended.failed} failed"
    console.print(f"\n{told}")
    if ended.stopped:
        console.print(f"[yellow]stopped early:[/] {escape(ended.stopped)}")
    for name, why in ended.not_run.items():
        console.print(f"[yellow]not run:[/] {escape(name)}: {escape(why)}", soft_wrap=True)
    console.print(f"report: {escape(str(outcome.report))}", soft_wrap=True)


def plain(outcome: "Outcome") -> dict[str, Any]:
    """Return the JSON for scripts: every number of the report, and the paths of its files."""
    ended = outcome.ended
    return {
        "experiment": outcome.experiment.name,
        "questions": len(outcome.loaded.examples),
        "refused": [one._asdict() for one in outcome.loaded.refused],
        "notes": outcome.loaded.notes,
        "rows": {"planned": ended.units, "written": ended.answered, "resumed": ended.resumed,
                 "failed": ended.failed},
        "stopped": ended.stopped,
        "not_run": ended.not_run,
        "variants": [
            {
                "name": line.variant.name,
                "condition": line.condition,
                "metrics": {name: cell and cell._asdict() for name, cell in line.cells.items()},
                "differences": {name: gap._asdict() for name, gap in line.gaps.items()},
                "statuses": dict(line.statuses),
                "actions": dict(line.actions),
                "paper": line.variant.paper,
            }
            for line in outcome.lines
        ],
        "files": {"rows": str(outcome.rows), "report": str(outcome.report),
                  "pictures": [str(path) for path in outcome.pictures]},
    }  # fmt: skip


def _command() -> str:
    """Return the command line without local folders; it never contains keys."""
    words = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    return shlex.join(["crag", *words])

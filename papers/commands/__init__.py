"""The commands of the papers beside those of the product: train, calibrate, export and bench."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from crag.cli import app, main
from crag.cli.app import JsonOption
from crag.cli.commands import command
from crag.papers.commands.bench import bench
from crag.papers.commands.train_group import LabelsOption, reflect_data, train

__all__ = ["app", "main"]


@command(
    app,
    "crag calibrate labelled.jsonl",
    "crag calibrate labelled.jsonl --evaluator mine --precision 0.95 --write",
    extra="train",
)
def calibrate(  # noqa: PLR0913, PLR0917 - one parameter for each option
    data: Annotated[
        list[Path],
        typer.Argument(help="Labelled pairs (jsonl, csv) or QA sets with documents (jsonl)."),
    ],
    evaluator: Annotated[
        str, typer.Option(help="Name of an evaluator, or the folder of one.")
    ] = "default",
    labels: LabelsOption = "auto",
    precision: Annotated[
        float | None,
        typer.Option(help="Share of the questions judged Correct that are right. Default: 0.92."),
    ] = None,
    discarded: Annotated[
        float | None,
        typer.Option(help="Most of the usable sets to discard, as a share. Default: 0.02."),
    ] = None,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="WRONG,NEEDLESS,DISCARDED",
            help="Minimise these costs instead: of a wrong Correct, a needless Ambiguous, and a "
            "discarded usable set.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the intervals.")] = 0,
    compat: Annotated[
        Literal["official"] | None,
        typer.Option(help="Score a T5 as the official code does: one by one, padded to 512."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the thresholds into the evaluator's card.")
    ] = False,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder for charts.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the thresholds of an evaluator to your labelled data."""
    from crag.papers.commands.calibrate import aim_of, run

    aim = aim_of(precision, discarded, costs)
    run(
        data, evaluator, labels, aim,
        seed=seed, compat=compat, write=write, pictures=pictures, as_json=as_json,
    )  # fmt: skip


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="Folder of a model with reflection tokens.")],
    output: Annotated[
        Path, typer.Option(help="GGUF file to write.", show_default=False, dir_okay=False)
    ],
    as_json: JsonOption = False,
) -> None:
    """Write a trained generator as GGUF, which llama.cpp's server loads."""
    from crag.papers.commands.export import run

    run(folder, output, as_json=as_json)


command(
    app,
    "crag bench experiment.toml --data questions.jsonl --output results",
    "crag bench experiment.toml --data questions.jsonl --output results --limit 50 --seed 1",
    extra="bench",
)(bench)
app.add_typer(train, name="train")
app.add_typer(reflect_data, name="reflect-data")

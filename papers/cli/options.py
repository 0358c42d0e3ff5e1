"""The options that several commands of the papers have."""

from pathlib import Path
from typing import Annotated, Literal

import typer

LabelledData = Annotated[
    list[Path],
    typer.Argument(help="Labelled pairs, or QA sets with documents (JSONL)."),
]
LabelsOption = Annotated[
    Literal["auto", "title"],
    typer.Option(help="What makes a document of a QA set relevant."),
]
RecipeSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A number of the recipe, such as epochs=3."),
]
CasesArgument = Annotated[list[Path], typer.Argument(help="Files of crag reflect-data (JSONL).")]
ModelFolder = Annotated[
    Path, typer.Option("--output", help="Folder to write the model to.", show_default=False)
]
DevelopmentOption = Annotated[
    list[Path] | None, typer.Option("--dev", help="Held-out data to measure on; repeatable.")
]
HeldOutOption = Annotated[
    float,
    typer.Option("--held-out", min=0, max=0.5, help="Without --dev, hold out this share."),
]
RecipeOption = Annotated[
    Path | None,
    typer.Option("--recipe", help="TOML file with a table of this name.", show_default=False),
]
PassagesArgument = Annotated[
    list[Path],
    typer.Argument(help="Questions with their passages (JSONL): paragraphs, or documents."),
]
LeftOutOption = Annotated[
    list[Path] | None,
    typer.Option("--dev", help="Leave out questions and articles of these files."),
]
RowsOption = Annotated[
    Path, typer.Option("--output", help="File to write (JSONL).", show_default=False)
]
ConcurrencyOption = Annotated[int, typer.Option(min=1, help="Questions at the same time.")]
SeedOption = Annotated[int, typer.Option(help="Seed of every draw.")]

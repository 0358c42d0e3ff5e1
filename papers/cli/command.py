"""What commands of the papers share: examples, the extra that they need, and options."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from crag.extras import Extra, how_to_install, require

Function = Callable[..., Any]
_MODULES: dict[Extra, tuple[str, ...]] = {
    "torch": ("torch", "transformers"),
    "train": ("accelerate", "sklearn"),
}
"""What of an extra its commands cannot do without; `bench` checks its own."""
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


class _WithDefault(TyperGroup):
    """A group whose first command runs when none is named, as in `crag train DATA`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, "-h", "--help"}:
            args = [next(iter(self.commands)), *args]
        return super().parse_args(ctx, args)


def group_of_commands(text: str) -> typer.Typer:
    """Return a group, of which the first command is the default."""
    return typer.Typer(
        cls=_WithDefault, help=text, no_args_is_help=True, add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip


def command(
    app: typer.Typer,
    *examples: str,
    name: str | None = None,
    extra: Extra | None = None,
) -> Callable[[Function], Function]:
    """Add a command, with examples for its help and the extra that it needs."""
    told = "\n\n".join(["Examples:", *examples])
    if extra:
        told += "\n\nIt needs an extra. " + how_to_install(extra).replace("[", r"\[")

    def add(function: Function) -> Function:
        @wraps(function)
        def run(**options: Any) -> None:
            # Before the command reads files, which may be wrong, too.
            if extra is not None and extra in _MODULES:
                require(extra, f"crag {name or function.__name__}", *_MODULES[extra])
            function(**options)

        app.command(name, epilog=told)(run)
        return function

    return add

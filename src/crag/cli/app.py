"""The program `crag`, to which each command adds itself."""

from typing import Annotated

import typer

app = typer.Typer(
    name="crag",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def examples(*commands: str) -> str:
    """Return the examples that the help of a command ends with."""
    return "\n\n".join(["Examples:", *commands])


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"crag {version('corrective-rag')}")
        raise typer.Exit


@app.callback()
def choose(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Ask your documents; get a corrected answer with citations."""

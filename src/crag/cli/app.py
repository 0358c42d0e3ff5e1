"""The program `crag`, to which each command adds itself, and the options before a command."""

import os
from pathlib import Path
from typing import Annotated

import typer

from crag.errors import DataError

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
    config: Annotated[
        Path | None,
        typer.Option(help="TOML file that names the parts. Default: CRAG_CONFIG, crag.toml."),
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback ends the command
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Ask your documents; get a corrected answer with citations."""
    if config is None:
        return
    if not config.expanduser().is_file():
        raise DataError(config, "--config names it, and there is no such file")
    os.environ["CRAG_CONFIG"] = str(config)  # Where every command, and its server, finds it.

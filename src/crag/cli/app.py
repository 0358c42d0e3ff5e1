"""The program `crag`, to which each command adds itself, and the options before a command."""

import os
from pathlib import Path
from typing import Annotated

import typer

from crag.cli.commands import Group, name_values
from crag.errors import ConfigurationError

app = typer.Typer(
    name="crag",
    help="Ask your documents; get a corrected answer with citations.",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"crag {version('corrective-rag')}")
        raise typer.Exit


@app.callback()
def choose(
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file that names the parts. Default: CRAG_CONFIG, crag.toml.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Ask your documents; get a corrected answer with citations."""
    del version  # Its callback has ended the command.
    if config is None:
        return
    try:
        config.expanduser().open("rb").close()
    except OSError as error:
        problem = f"--config names it, and it cannot be read ({error.strerror})"
        raise ConfigurationError(config, problem) from error
    os.environ["CRAG_CONFIG"] = str(config)  # Where every command, and its server, finds it.


name_values(choose)

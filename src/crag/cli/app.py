"""The program `crag`: its commands, in the order of the help."""

import sys
from importlib.metadata import version as version_of
from typing import Annotated

import typer

from crag.cli.ask import ask
from crag.cli.batch import batch
from crag.cli.chat import chat
from crag.cli.doctor import doctor
from crag.cli.evaluate import evaluate
from crag.cli.index import index
from crag.cli.list import list_documents
from crag.cli.serve import serve
from crag.cli.terminal import print_error
from crag.errors import CragError

USAGE_ERROR = 2
app = typer.Typer(
    name="crag",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(index)
app.command("list")(list_documents)
for _command in (ask, chat, evaluate, batch, doctor, serve):
    app.command()(_command)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"crag {version_of('corrective-rag')}")
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


def main() -> None:
    """Run the command line; a known error prints its message and exits with 2.

    With ``--json`` the message is JSON on standard output, for scripts.
    """
    try:
        app(prog_name="crag")
    except CragError as error:
        print_error(error, as_json="--json" in sys.argv)
        sys.exit(USAGE_ERROR)

"""The command `crag`."""

import sys

from crag.cli.app import app
from crag.cli.bench import bench
from crag.cli.commands import command
from crag.cli.train_group import reflect_data, train

command(
    app,
    "crag bench experiment.toml --data questions.jsonl --output results",
    "crag bench experiment.toml --data questions.jsonl --output results --limit 50 --seed 1",
    extra="bench",
)(bench)
app.add_typer(train, name="train")
app.add_typer(reflect_data, name="reflect-data")

__all__ = ["app", "main"]

USAGE_ERROR = 2


def main() -> None:
    """Run the command line; a known error prints its message and exits with 2.

    With ``--json`` the message is JSON on standard output, for scripts.
    """
    from crag.errors import CragError

    try:
        app(prog_name="crag")
    except CragError as error:
        from crag.cli.terminal import print_error

        print_error(error, as_json="--json" in sys.argv)
        sys.exit(USAGE_ERROR)

"""The command `crag`: a file for each command, which holds its options and what it does."""

import sys

from crag.cli import (  # isort: skip - in the order of the help
    index,
    list,  # noqa: A004 - named as the command
    ask,
    chat,
    evaluate,
    batch,
    doctor,
    serve,
)
from crag.cli.app import app

__all__ = [
    "app", "ask", "batch", "chat", "doctor", "evaluate", "index", "list", "main", "serve",
]  # fmt: skip

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

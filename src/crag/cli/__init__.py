"""The command `crag`."""

import sys

from crag.cli.app import app
from crag.cli.bench import bench

app.command()(bench)

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; a known error prints its message and exits with 2."""
    from crag.cli.failures import report
    from crag.errors import CragError

    try:
        app()
    except CragError as error:
        sys.exit(report(error, as_json="--json" in sys.argv))

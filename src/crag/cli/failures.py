"""Print errors without a stack trace."""

from crag.cli.terminal import print_json
from crag.errors import CragError

USAGE_ERROR = 2


def report(error: CragError, *, as_json: bool) -> int:
    """Print the error, as JSON on standard output for scripts; return the exit code."""
    if as_json:
        print_json({"error": {"type": type(error).__name__, "message": str(error)}})
    else:
        from rich.console import Console
        from rich.markup import escape

        Console(stderr=True).print(f"[bold red]Error:[/] {escape(str(error))}", highlight=False)
    return USAGE_ERROR

"""Print errors without a stack trace."""

import json
import sys

from crag.errors import CragError

USAGE_ERROR = 2


def report(error: CragError, *, as_json: bool) -> int:
    """Print the error, as JSON on standard output for scripts; return the exit code."""
    if as_json:
        entry = {"error": {"type": type(error).__name__, "message": str(error)}}
        sys.stdout.write(json.dumps(entry, ensure_ascii=False) + "\n")
    else:
        from rich.console import Console

        Console(stderr=True).print(f"[bold red]Error:[/] {_plain(str(error))}", highlight=False)
    return USAGE_ERROR


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)

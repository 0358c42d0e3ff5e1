"""Ask on the terminal whether to search the web."""

import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from crag.text.untrusted import without_controls

_ANSWERS = {"": "approve", "y": "approve", "yes": "approve", "n": "refuse", "no": "refuse"}


def decide(request: Mapping[str, Any]) -> str | dict[str, str]:
    """Show the query and the reason on standard error, and read the decision.

    An empty line or "y" approves, "n" refuses, anything else is the new query. The end of the input
    refuses.
    """
    console = Console(stderr=True, highlight=False)
    console.print(f"[bold]confirm[/]   {_safe(request['reason'])}", soft_wrap=True)
    console.print(f"  The web would be searched for: [bold]{_safe(request['query'])}[/]")
    console.print(escape("  Search? [Y]es, [n]o, or another query: "), end="")
    line = sys.stdin.readline()
    if not line:
        console.print()
        return "refuse"
    answer = line.strip()
    return _ANSWERS.get(answer.lower()) or {"query": answer}


def _safe(text: object) -> str:
    return escape(without_controls(str(text)))

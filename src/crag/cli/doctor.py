"""`crag doctor`: which parts are in use, what is missing, and how to fix it."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crag.cli.terminal import environment, plain_table, print_json
from crag.factory import PartStatus, examine

_MARKS = {
    "ready": "[green]ready[/]",
    "missing": "[yellow]missing[/]",
    "broken": "[red]broken[/]",
    "blocked": "[yellow]blocked[/]",
}
_NEEDED = {"installation", "embeddings", "index", "evaluator", "answers"}


def run(location: str | None, *, quick: bool, as_json: bool) -> int:
    """Show every part; return 0 if `crag ask` would work, else 1."""
    choices = examine(environment(location), use=not quick)
    if as_json:
        print_json([choice._asdict() for choice in choices])
    else:
        Console().print(_table(choices))
    works = all(c.state == "ready" for c in choices if c.part in _NEEDED)
    return 0 if works else 1


def _table(choices: list[PartStatus]) -> Table:
    table: Table = plain_table(show_header=False)
    for choice in choices:
        why = f"{choice.in_use} ({choice.why})" if choice.why else choice.in_use
        table.add_row(choice.part, _MARKS[choice.state], escape(why))
        if choice.todo:
            table.add_row("", "", f"[dim]→ {escape(choice.todo)}[/]")
    return table

"""`crag doctor`: which parts are in use, what is missing, and how to fix it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from crag.cli.app import app
from crag.cli.commands import command
from crag.cli.options import IndexOption, JsonOption
from crag.cli.terminal import environment, print_json, print_table, safe

if TYPE_CHECKING:
    from crag.factory.status import PartStatus

_MARKS = {
    "ready": "[green]ready[/]",
    "missing": "[yellow]missing[/]",
    "broken": "[red]broken[/]",
    "blocked": "[yellow]blocked[/]",
}
_NEEDED = {"installation", "embeddings", "index", "evaluator", "answers"}


@command(
    app,
    "crag doctor",
    "crag doctor --quick --json",
)
def doctor(
    location: IndexOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only name the parts: load nothing, ask no server.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Use each part once; show which are in use, what is missing, and how to fix it.

    Exits with 1 if a part is broken, or one is missing that every question needs.
    """
    from crag.factory.doctor import examine

    parts = examine(environment(location), use=not quick)
    if as_json:
        print_json([part._asdict() for part in parts])
    else:
        print_table(row for part in parts for row in _rows(part))
    works = all(
        part.state == "ready" or (part.state == "missing" and part.part not in _NEEDED)
        for part in parts
    )
    raise typer.Exit(0 if works else 1)


def _rows(part: "PartStatus") -> Iterator[tuple[str, str, str]]:
    why = f"{part.in_use} ({part.why})" if part.why else part.in_use
    yield part.part, _MARKS[part.state], safe(why)
    if part.todo:
        yield "", "", f"[dim]→ {safe(part.todo)}[/]"

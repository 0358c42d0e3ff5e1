"""`crag ask`: run a graph on a question and show its decisions."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crag.cli.app import app, examples
from crag.cli.options import FolderOption, IndexOption, JsonOption, MethodOption, SettingsOption
from crag.cli.terminal import print_json, say

if TYPE_CHECKING:
    from crag.state import Outcome

EXIT_CODES: dict["Outcome", int] = {
    "answered": 0, "likely": 0, "not_found": 4, "nothing_asked": 0,
}  # fmt: skip
"""What `crag ask` exits with; 1 and 2 are errors."""


@app.command(
    epilog=examples(
        'crag ask "How long is parental leave?"',
        'crag ask "Who approves travel?" --in handbook --verbose',
        'crag ask "Who approves travel?" --compare',
        'crag ask "Why?" --set upper=0.5 --set strips_kept=3 --json',
    )
)
def ask(  # noqa: PLR0913, PLR0917 - one parameter for each option
    question: Annotated[str, typer.Argument(help="Your question.")],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    folder: FolderOption = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Show what was dropped, and all that could be quoted."
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the answer and nothing else.")
    ] = False,
    compared: Annotated[
        bool, typer.Option("--compare", help="Show the answer of plain retrieval first.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a question; see the decision, the strips, the answer and its sources.

    Exits with 0 for an answer and for passages that are likely to be one, and with 4 if nothing was
    found.
    """
    if quiet and (as_json or verbose or compared):
        raise typer.BadParameter("--quiet excludes --json, --verbose and --compare")

    from langgraph.checkpoint.memory import InMemorySaver

    from crag.cli.run import Asking
    from crag.cli.show import Trace
    from crag.graph_registry import graph_named
    from crag.text.untrusted import without_controls

    plain: dict[str, Any] = {}
    with Asking(location, settings, folder) as asking:
        given, silent = {"question": question}, quiet or as_json
        if compared:
            trace = None if silent else Trace(brief=True)
            if trace:
                say("[bold]Plain retrieval[/]")
            plain = {"plain": _told(asking.answered(graph_named("rag"), given, trace))}
            if trace:
                say("\n[bold]Corrected[/]")
        trace = None if silent else Trace(verbose=verbose)
        asking.checkpointer = InMemorySaver() if asking.settings.confirm_web else None
        state = asking.answered(graph_named(method), given, trace)
    if trace is not None:
        trace.spent()
    elif as_json:
        print_json({"method": method} | _told(state) | plain)
    else:
        sys.stdout.write(f"{without_controls(state['answer'])}\n")
    raise typer.Exit(EXIT_CODES[state["outcome"]])


def _told(state: dict[str, Any]) -> dict[str, Any]:
    """Return what `--json` tells of a state."""
    told: dict[str, Any] = dict.fromkeys(("question", "action", "outcome", "answer"))
    told |= {"citations": [], "strips": [], "events": [], "usage": {}, **state}
    return {name: told[name] for name in told if name not in {"messages", "documents"}}

"""`crag ask`: run a graph on a question and show its decisions."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crag.cli.app import app, examples
from crag.cli.options import FolderOption, IndexOption, JsonOption, MethodOption, SettingsOption
from crag.cli.terminal import print_json

if TYPE_CHECKING:
    from crag.state import Outcome

EXIT_CODES: dict["Outcome", int] = {
    "answered": 0, "likely": 0, "not_found": 4, "nothing_asked": 0,
}  # fmt: skip
"""What `crag ask` exits with; 1 and 2 are errors."""
_LEFT_OUT = {"messages", "documents"}
"""Keys of the state that `--json` leaves out."""


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
        bool, typer.Option("--verbose", "-v", help="Show every strip that was dropped.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all that could be quoted, not the best alone.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the answer and nothing else.")
    ] = False,
    compared: Annotated[
        bool,
        typer.Option(
            "--compare", help="Ask plain retrieval too, and show what correction changed."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a question; see the decision, the strips, the answer and its sources.

    Exits with 0 for an answer and for passages that are likely to be one, and with 4 if nothing was
    found.
    """
    if quiet and (as_json or verbose or everything):
        raise typer.BadParameter("--quiet excludes --json, --verbose and --all")
    if compared and (quiet or method != "crag"):
        raise typer.BadParameter("--compare shows crag beside rag: leave out --method and --quiet")

    from asyncio import Runner

    from langgraph.checkpoint.memory import InMemorySaver
    from rich.console import Console

    from crag.cli.run import answered, opened
    from crag.cli.show import Trace, show_comparison
    from crag.cli.terminal import say
    from crag.correction.comparison import compare
    from crag.graph_registry import GRAPHS, graph_named
    from crag.text.untrusted import without_controls

    chosen, parts = opened(location, settings, folder)
    given, console = {"question": question}, Console(highlight=False)
    trace: Trace | None = None
    plain: dict[str, Any] = {}
    with Runner() as runner:
        if compared:
            if not as_json:
                say("[bold]Plain retrieval[/]")
                trace = Trace(console, everything=everything, brief=True)
            plain = answered(runner, GRAPHS["rag"].build(parts), given, chosen, trace)
            if not as_json:
                say("\n[bold]Corrected[/]")
        if not (quiet or as_json):
            trace = Trace(console, verbose=verbose, everything=everything)
        checkpointer = InMemorySaver() if chosen.confirm_web else None
        graph = graph_named(method).build(parts, checkpointer=checkpointer)
        state = answered(runner, graph, given, chosen, trace)
    if as_json:
        beside = {"plain": _told(plain), **compare(plain, state)._asdict()} if compared else {}
        print_json({"method": method} | _told(state) | beside)
    elif trace is not None:
        if compared:
            show_comparison(compare(plain, state))
        trace.spent()
    else:
        sys.stdout.write(f"{without_controls(state['answer'])}\n")
    raise typer.Exit(EXIT_CODES[state["outcome"]])


def _told(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `--json` tells of a state."""
    told: dict[str, Any] = dict.fromkeys(("question", "action", "outcome", "answer"))
    told |= {"citations": [], "strips": [], "events": [], "usage": {}}
    return told | {name: value for name, value in state.items() if name not in _LEFT_OUT}

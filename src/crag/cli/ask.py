"""`crag ask`: run a graph on a question and show its decisions."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crag.cli.app import app
from crag.cli.commands import command
from crag.cli.options import FolderOption, IndexOption, JsonOption, MethodOption, SettingsOption
from crag.cli.terminal import print_json

if TYPE_CHECKING:
    from crag.state import Outcome

EXIT_CODES: dict["Outcome", int] = {
    "answered": 0, "likely": 0, "not_found": 4, "nothing_asked": 0,
}  # fmt: skip
"""What `crag ask` exits with; 1 and 2 are errors."""
_REPORTED = (
    "question", "action", "scores", "thresholds", "query", "hits", "pages", "internal", "external",
    "knowledge", "answer", "outcome", "citations", "sentences", "further", "abstained", "events",
    "usage",
)  # fmt: skip
_REPORTED_BY_SOME = ("approximation", "choices", "passages", "critiques", "reflection")
"""Keys that only some graphs write."""


@command(
    app,
    'crag ask "How long is parental leave?"',
    'crag ask "Who approves travel?" --in handbook --verbose',
    'crag ask "Who approves travel?" --compare',
    'crag ask "Why?" --set upper=0.5 --set strips_kept=3 --json',
)
def ask(  # noqa: PLR0913, PLR0917 - one parameter for each option
    question: Annotated[str, typer.Argument(help="Your question.")],
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    folder: FolderOption = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Search only this: prose, list, table or code."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="Search only files modified since.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DAY", help="Search only files modified until.")
    ] = None,
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

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.memory import InMemorySaver
    from rich.console import Console

    from crag.cli.compare import answered_plainly, show_comparison
    from crag.cli.run_graph import answered, opened
    from crag.cli.show import Trace
    from crag.cli.stopwatch import Stopwatch
    from crag.correction.comparison import compare
    from crag.graph_registry import graph_named
    from crag.text.untrusted import without_controls

    filters = {"kind": kind, "since": since, "until": until}
    chosen, parts = opened(location, settings, folder, **filters)
    checkpointer = InMemorySaver() if chosen.confirm_web else None
    watch = Stopwatch()
    config = RunnableConfig(configurable={"thread_id": "ask"}, callbacks=[watch])
    trace = None
    plain: dict[str, Any] = {}
    with Runner() as runner:
        if compared:
            plain = answered_plainly(
                runner, parts, question, chosen, shown=not as_json, everything=everything
            )
        if not (quiet or as_json):
            trace = Trace(Console(highlight=False), verbose=verbose, everything=everything)
        graph = graph_named(method).build(parts, checkpointer=checkpointer)
        state = answered(runner, graph, {"question": question}, chosen, config, trace)
    if as_json:
        beside = {"plain": _told(plain), **compare(plain, state)._asdict()} if compared else {}
        print_json({"method": method} | _told(state) | beside | {"seconds": watch.seconds})
    elif trace is not None:
        if compared:
            show_comparison(compare(plain, state))
        trace.spent(watch.seconds)
    else:
        sys.stdout.write(f"{without_controls(state['answer'])}\n")
    raise typer.Exit(EXIT_CODES[state["outcome"]])


def _told(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what `--json` tells of a state."""
    told = {name: state.get(name) for name in _REPORTED}
    return told | {name: state[name] for name in _REPORTED_BY_SOME if name in state}

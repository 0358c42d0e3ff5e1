"""`crag ask`: run a graph on a question and show its decisions."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crag.cli import options
from crag.cli.terminal import print_json

if TYPE_CHECKING:
    from crag.state import Outcome

EXIT_CODES: dict["Outcome", int] = {
    "answered": 0, "likely": 0, "not_found": 4, "nothing_asked": 0,
}  # fmt: skip
"""What `crag ask` exits with; 1 and 2 are errors."""


def ask(  # noqa: PLR0913, PLR0917 - one parameter for each option
    question: Annotated[str, typer.Argument(help="Your question.")],
    location: options.Index = None,
    method: options.Method = "crag",
    settings: options.Settings = None,
    folder: options.Folder = None,
    trace: options.Trace = False,
    as_json: options.Json = False,
) -> None:
    """Ask a question; see the answer and its sources.

    Exits with 0 for an answer and for passages that are likely to be one, and with 4 if nothing was
    found.
    """
    from crag.cli import show

    answering = show.ask(show.opened(location, settings, folder, method), question)
    state = asyncio.run(answering).state
    if as_json:
        told: dict[str, Any] = dict.fromkeys(("question", "action", "outcome", "answer"))
        told |= {"citations": [], "strips": [], "events": [], "usage": {}, **state}
        private = {"messages", "documents"}
        print_json({"method": method} | {key: told[key] for key in told if key not in private})
    else:
        show.show(state, trace=trace)
    raise typer.Exit(EXIT_CODES[state["outcome"]])

"""`crag ask`: run a graph on a question and show its decisions."""

import asyncio
from typing import Annotated

import typer

from crag.cli import options
from crag.cli.terminal import print_json

NOT_FOUND = 4
"""What `crag ask` exits with where nothing was found; 1 and 2 are errors."""


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
        private = {"messages", "documents"}
        print_json({"method": method} | {key: state[key] for key in state if key not in private})
    else:
        show.show(state, trace=trace)
    raise typer.Exit(NOT_FOUND if state["outcome"] == "not_found" else 0)

"""`crag chat`: question after question, each of which may lean on those before it."""

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

import typer

from crag.cli.app import app, examples
from crag.cli.options import FolderOption, IndexOption, MethodOption, SettingsOption
from crag.cli.terminal import print_error, safe, say
from crag.errors import CragError

_ENDS: Final = ("exit", "quit", "bye", ":q")
"""What ends the chat, also behind a slash."""
_HELP: Final = f"""\
QUESTION        ask the documents; a follow-up may lean on what was said before
/sources        show the passages that the last answer cites
/help           show this
{", ".join(_ENDS)}
                end the chat, as /exit, /quit and Ctrl-D do
Ctrl-C          cancel an answer, or end the chat where a question is expected"""
_COMMAND: Final = re.compile(r"(/[\w-]+)(?:\s[^?]*)?")
"""A line with a question mark is none: "/health returns 500, why?" is about an address."""


@app.command(
    epilog=examples("crag chat", "crag chat --in handbook", "crag chat --method self-crag -v")
)
def chat(
    location: IndexOption = None,
    method: MethodOption = "crag",
    settings: SettingsOption = None,
    folder: FolderOption = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show how each answer came about.")
    ] = False,
) -> None:
    """Ask one question after the other; a follow-up may lean on what was said before.

    Type /help for what else can be typed, and exit to end the chat, as Ctrl-D does. Ctrl-C cancels
    an answer; where a question is expected, it ends the chat too.
    """
    from asyncio import Runner

    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver
    from rich.console import Console

    from crag.cli.run import answered, opened
    from crag.cli.show import Trace
    from crag.graph_registry import graph_named

    chosen, parts = opened(location, settings, folder)
    graph = graph_named(method).build(parts, checkpointer=InMemorySaver())
    console = Console(highlight=False)
    state: dict[str, Any] = {}
    with Runner() as runner:
        for line in _lines():
            if typed := _COMMAND.fullmatch(line):
                _obey(typed[1].lower(), state)
                continue
            trace = Trace(console, verbose=verbose, brief=not verbose, more="")
            given = {"messages": [HumanMessage(line)]}
            try:
                state = answered(runner, graph, given, chosen, trace)
            except KeyboardInterrupt:
                say("\n[yellow]cancelled[/]", stderr=True)
            except CragError as error:  # Such as a question that is too long.
                print_error(error, as_json=False)
            else:
                if verbose:
                    trace.spent()


def _lines() -> Iterator[str]:
    """Yield what is typed or piped in, until one of `_ENDS`, the end, or Ctrl-C."""
    prompt = ""
    if sys.stdin.isatty():
        import readline  # noqa: F401 - arrow keys edit the line, and go through earlier ones

        say("Ask a question, or type /help.")
        prompt = "\n> "
    while True:
        try:
            line = input(prompt).strip()
        except (EOFError, KeyboardInterrupt):
            say()
            return
        if line.lower().rstrip(" .!").removeprefix("/") in _ENDS:
            return
        if line:
            yield line


def _obey(command: str, state: Mapping[str, Any]) -> None:
    from crag.cli.show import sources_of

    if command == "/help":
        say(_HELP)
    elif command == "/sources":
        say("\n\n".join(sources_of(state)) or "Nothing was cited yet.")
    else:
        say(f"There is no command {safe(command)}: /help shows what can be typed", stderr=True)

"""`crag chat`: question after question, each of which may lean on those before it."""

import re
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from crag.cli.app import app
from crag.cli.commands import command
from crag.cli.options import FolderOption, IndexOption, MethodOption, SettingsOption
from crag.cli.terminal import print_error, safe, say
from crag.errors import CragError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDS: Final = ("exit", "quit", "bye", ":q")
"""What ends the chat, also behind a slash."""
_HELP: Final = f"""\
QUESTION        ask the documents; a follow-up may lean on what was said before
/help           show this
{", ".join(_ENDS)}
                end the chat, as /exit, /quit and Ctrl-D do
Ctrl-C          cancel an answer, or end the chat where a question is expected"""
_COMMAND: Final = re.compile(r"(/[\w-]+)(?:\s[^?]*)?")
"""A line with a question mark is none: "/health returns 500, why?" is about an address."""


@command(app, "crag chat", "crag chat --in handbook", "crag chat --method self-crag --verbose")
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
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.memory import InMemorySaver
    from rich.console import Console

    from crag.cli.run_graph import answered, opened
    from crag.cli.show import Trace
    from crag.cli.stopwatch import Stopwatch
    from crag.graph_registry import graph_named

    chosen, parts = opened(location, settings, folder)
    graph = graph_named(method).build(parts, checkpointer=InMemorySaver())
    console = Console(highlight=False)
    with Runner() as runner:
        for question in _questions():
            trace = Trace(console, verbose=verbose, brief=not verbose, more="")
            watch = Stopwatch()
            config = RunnableConfig(configurable={"thread_id": "chat"}, callbacks=[watch])
            given = {"messages": [HumanMessage(question)]}
            try:
                answered(runner, graph, given, chosen, config, trace)
            except KeyboardInterrupt:
                say("\n[yellow]cancelled[/]", stderr=True)
            except CragError as error:  # Such as a question that is too long.
                print_error(error, as_json=False)
            else:
                if verbose:
                    trace.spent(watch.seconds)


def _questions() -> "Iterator[str]":
    """Yield the questions that are typed or piped in, until one of `_ENDS`, the end, or Ctrl-C."""
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
        if typed := _COMMAND.fullmatch(line):
            _obey(typed[1])
        elif line:
            yield line


def _obey(command: str) -> None:
    if command.lower() == "/help":
        say(_HELP)
    else:
        say(f"There is no command {safe(command)}: /help shows what can be typed", stderr=True)

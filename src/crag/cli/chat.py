"""`crag chat`: question after question, each of which may lean on those before it."""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any, Final

from crag.cli import options
from crag.cli.terminal import print_error, say
from crag.errors import CragError

_ENDS: Final = ("exit", "quit")
"""What ends the chat, also behind a slash."""
_HELP: Final = """\
QUESTION        ask the documents; a follow-up may lean on what was said before
/sources        show the passages that the last answer cites
/help           show this
exit, quit      end the chat, as Ctrl-D does
Ctrl-C          cancel an answer, or end the chat where a question is expected"""


def chat(
    location: options.Index = None,
    method: options.Method = "crag",
    settings: options.Settings = None,
    folder: options.Folder = None,
    trace: options.Trace = False,
) -> None:
    """Ask one question after the other; a follow-up may lean on what was said before.

    Type /help for what else can be typed, and exit to end the chat, as Ctrl-D does. Ctrl-C cancels
    an answer; where a question is expected, it ends the chat too.
    """
    from langchain_core.messages import HumanMessage

    from crag.cli.show import ask, opened, show, show_sources

    documents, state = opened(location, settings, folder, method), dict[str, Any]()
    for line in _lines():
        try:
            if line == "/help":
                say(_HELP)
            elif line == "/sources":
                show_sources(state)
            else:
                asked = [*state.get("messages", ()), HumanMessage(line)]
                state = dict(asyncio.run(ask(documents, asked)).state)
                show(state, trace=trace)
        except KeyboardInterrupt:
            say("\n[yellow]cancelled[/]", stderr=True)
        except CragError as error:  # Such as a question that is too long.
            print_error(error, as_json=False)


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

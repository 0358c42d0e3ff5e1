"""Run a graph for somebody at a terminal, and ask where it interrupts."""

import sys
from asyncio import Runner
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from crag.api import INTERRUPT, MODES, Step, Streamed
from crag.cli.terminal import assigned, environment, safe, say
from crag.factory.parts import choose_parts
from crag.graph_registry import graph_named
from crag.settings import Settings
from crag.telemetry import start
from crag.text.untrusted import without_controls

_ANSWERS = {"": "approve", "y": "approve", "yes": "approve", "n": "refuse", "no": "refuse"}


class Asking:
    """A graph with the parts and settings of a command; telemetry watches it from here on.

    Raises:
        CragError: a setting or a part cannot be used, or there is no index.
    """

    def __init__(
        self, location: str | None, settings: Sequence[str] | None, folder: str | None, method: str
    ) -> None:
        given = assigned(settings)
        if folder is not None:  # One that is there is named from wherever it is asked.
            given["folder"] = str(Path(folder).resolve()) if Path(folder).exists() else folder
        self._settings = Settings.model_validate(given)
        place = environment(location)
        start()
        parts = choose_parts(place, index_must_exist=True)
        self._graph = graph_named(method).build(parts, checkpointer=InMemorySaver())
        self._runner = Runner()
        self.steps: list[Step] = []
        """What the nodes wrote for the last question."""

    def __enter__(self) -> Self:
        """Ask until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs."""
        self._runner.close()

    def ask(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Run the graph to its end and return the state.

        Raises:
            KeyboardInterrupt: Ctrl-C; the calls that the graph waited for are cancelled.
        """
        self.steps, following = [], given
        while True:
            state = self._runner.run(self._streamed(following))
            if INTERRUPT not in state:
                return state
            following = Command(resume=_confirmed(state[INTERRUPT][0].value))  # type: ignore[assignment]

    async def _streamed(self, given: Any) -> dict[str, Any]:
        """Run until the graph ends or interrupts; a draft of the answer shows until then."""
        run, draft, reply = Streamed(), "", None
        config = RunnableConfig(configurable={"thread_id": "terminal"})
        console = Console(stderr=True, quiet=not sys.stderr.isatty())
        with Live(console=console, transient=True, redirect_stdout=False) as live:
            async for item in self._graph.astream(
                given, config, context=self._settings, stream_mode=MODES, subgraphs=True
            ):
                for piece in run.read(*item):
                    if isinstance(piece, Step):
                        self.steps.append(piece)
                        continue
                    draft = draft * (piece.reply == reply) + piece.text
                    reply = piece.reply
                    live.update(Markdown(without_controls(draft), hyperlinks=False))
        return run.state


def _confirmed(request: Mapping[str, Any]) -> str | dict[str, str]:
    """Show the query and the reason on standard error, and read the decision.

    An empty line or "y" approves, "n" refuses, anything else is the new query. The end of the input
    refuses.
    """
    say(f"[bold]confirm[/]   {safe(request['reason'])}", stderr=True)
    say(f"  The web would be searched for: [bold]{safe(request['query'])}[/]", stderr=True)
    say(r"  Search? \[Y]es, \[n]o, or another query: ", stderr=True, end="")
    line = sys.stdin.readline()
    if not line:
        say(stderr=True)
        return "refuse"
    answer = line.strip()
    return _ANSWERS.get(answer.lower()) or {"query": answer}

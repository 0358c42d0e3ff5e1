"""Run graphs for somebody at a terminal: show them, and ask where they interrupt."""

import sys
from asyncio import Runner
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.runnables import RunnableConfig
from langgraph.types import Checkpointer, Command

from crag.api import INTERRUPT, MODES, Graph, Streamed, Token
from crag.cli.show import Trace
from crag.cli.terminal import assigned, environment, safe, say
from crag.errors import SettingsError
from crag.factory.parts import choose_parts
from crag.graph_registry import GraphEntry
from crag.runtime.attempt import Attempt
from crag.settings import Settings
from crag.telemetry import start

_ANSWERS = {"": "approve", "y": "approve", "yes": "approve", "n": "refuse", "no": "refuse"}


class Asking:
    """The parts and settings of a command that asks; telemetry watches it from here on.

    Raises:
        CragError: a setting, a part or the folder cannot be used, or there is no index.
    """

    def __init__(
        self, location: str | None, settings: Sequence[str] | None, folder: str | None
    ) -> None:
        given = assigned(settings)
        if folder is not None:
            folder = str(Path(folder).resolve()) if Path(folder).exists() else folder
            given["folder"] = folder
        self.settings = Settings.model_validate(given)
        self.checkpointer: Checkpointer = None
        place = environment(location)
        start(place.telemetry)
        self._parts = choose_parts(place, index_must_exist=True)
        self._graphs: dict[str, Graph] = {}
        self._runner = Runner()
        found = None
        with Attempt("retriever"):  # What fails here fails in the run too, which says so.
            found = folder and self._parts.retriever.invoke(folder, k=1, folder=folder)
        if found == []:
            raise SettingsError("--in", folder, "the index has nothing of it: see crag list")

    def __enter__(self) -> Self:
        """Ask until the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what still runs."""
        self._runner.close()

    def answered(
        self, entry: GraphEntry, given: Mapping[str, Any], trace: Trace | None
    ) -> dict[str, Any]:
        """Run a graph to its end and return the state; `trace` shows what its nodes do.

        Raises:
            KeyboardInterrupt: Ctrl-C; the calls that the graph waited for are cancelled.
        """
        if entry.builder not in self._graphs:
            graph = entry.build(self._parts, checkpointer=self.checkpointer)
            self._graphs[entry.builder] = graph
        following: Any = given
        try:
            while True:
                run = self._streamed(self._graphs[entry.builder], following, trace)
                state = self._runner.run(run)
                if INTERRUPT not in state:
                    return state
                following = Command(resume=_confirmed(state[INTERRUPT][0].value))
        finally:
            if trace is not None:
                trace.withdraw()

    async def _streamed(self, graph: Graph, given: Any, trace: Trace | None) -> dict[str, Any]:
        """Run until the graph ends or interrupts, and return the state with any interrupt."""
        run = Streamed()
        config = RunnableConfig(configurable={"thread_id": "terminal"})
        async for item in graph.astream(
            given, config, context=self.settings, stream_mode=MODES, subgraphs=True
        ):
            for piece in run.read(*item):
                if trace is None:
                    continue
                if isinstance(piece, Token):
                    trace.token(piece.text, piece.reply)
                else:
                    trace.update(piece.node, piece.update)
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

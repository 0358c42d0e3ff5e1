"""Run a graph for somebody at a terminal: show it, and ask them where it interrupts."""

import sys
from asyncio import Runner
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StreamMode

from crag.api import INTERRUPT, MODES, Graph, Streamed, Token
from crag.cli.show import Trace
from crag.cli.terminal import assigned, environment, safe, say
from crag.errors import SettingsError
from crag.factory.parts import choose_parts
from crag.parts import Parts
from crag.runtime.attempt import Attempt
from crag.settings import Settings
from crag.telemetry import start

_ANSWERS = {"": "approve", "y": "approve", "yes": "approve", "n": "refuse", "no": "refuse"}


def opened(
    location: str | None, settings: Sequence[str] | None, folder: str | None
) -> tuple[Settings, Parts]:
    """Return the settings of a run and the parts of its graph; telemetry watches it from here on.

    Raises:
        CragError: a setting, a part or the folder cannot be used, or there is no index.
    """
    given = assigned(settings)
    if folder is not None:
        given["folder"] = folder = str(Path(folder).resolve()) if Path(folder).exists() else folder
    chosen = Settings.model_validate(given)
    place = environment(location)
    start(place.telemetry)
    parts = choose_parts(place, index_must_exist=True)
    if folder is not None:
        found = None
        with Attempt("retriever"):  # What fails here fails in the run too, which says so.
            found = parts.retriever.invoke(folder, k=1, folder=folder)
        if found == []:
            raise SettingsError("--in", folder, "the index has nothing of it: see crag list")
    return chosen, parts


def answered(  # noqa: PLR0913, PLR0917 - what a run needs
    runner: Runner,
    graph: Graph,
    given: Mapping[str, Any],
    settings: Settings,
    trace: Trace | None = None,
    thread: str = "ask",
) -> dict[str, Any]:
    """Run `graph` to its end and return the state; `trace` shows what its nodes do.

    Raises:
        KeyboardInterrupt: Ctrl-C; the calls that the graph waited for are cancelled.
    """
    config = RunnableConfig(configurable={"thread_id": thread})
    following: Any = given
    try:
        while True:
            state = runner.run(_streamed(graph, following, settings, config, trace))
            if INTERRUPT not in state:
                return state
            following = Command(resume=_confirmed(state[INTERRUPT][0].value))
    finally:
        if trace is not None:
            trace.withdraw()


async def _streamed(
    graph: Graph, given: Any, settings: Settings, config: RunnableConfig, trace: Trace | None
) -> dict[str, Any]:
    """Run until the graph ends or interrupts, and return the state with any interrupt."""
    run = Streamed()
    modes: list[StreamMode] = MODES if trace else ["values", "updates"]
    async for path, mode, chunk in graph.astream(
        given, config, context=settings, stream_mode=modes, subgraphs=True
    ):
        for piece in run.read(path, mode, chunk):
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

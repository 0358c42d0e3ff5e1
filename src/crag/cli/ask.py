"""`crag ask`: run a graph on a question and show its decisions."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from rich.console import Console

from crag.cli.show import Trace
from crag.cli.stopwatch import Stopwatch
from crag.cli.terminal import assigned, environment, print_json, safe
from crag.factory import choose_parts
from crag.graph_registry import graph_named
from crag.settings import Settings, settings_from_text
from crag.state import Certainty
from crag.telemetry import start

INTERRUPT = "__interrupt__"
EXIT_CODES: dict[Certainty, int] = {"answered": 0, "unsure": 3, "nothing_found": 4}
"""What `crag ask` exits with; 1 and 2 are errors. With `--json` it is 0 for all of them."""
_ANSWERS = {"": "approve", "y": "approve", "yes": "approve", "n": "refuse", "no": "refuse"}
_REPORTED = (
    "question",
    "action",
    "scores",
    "thresholds",
    "query",
    "hits",
    "pages",
    "internal",
    "external",
    "knowledge",
    "answer",
    "certainty",
    "citations",
    "sentences",
    "further",
    "abstained",
    "events",
    "usage",
)
_REPORTED_BY_SOME = (
    "approximation", "choices", "passages", "critiques", "reflection", "sub_questions",
)  # fmt: skip
"""Keys that only some graphs write."""


def run(  # noqa: PLR0913 - the options of the command
    question: str,
    location: str | None,
    method: str,
    assignments: Sequence[str],
    *,
    verbose: bool,
    as_json: bool,
    everything: bool = False,
) -> int:
    """Answer `question`, and return the exit code.

    Raises:
        CragError: a problem was found before the run.
    """
    chosen = settings_from_text(assigned(assignments))
    found = environment(location)
    start(found)
    parts = choose_parts(found, index_must_exist=True)
    checkpointer = InMemorySaver() if chosen.confirm_web else None
    graph = graph_named(method).build(parts, checkpointer=checkpointer)
    watch = Stopwatch()
    config = RunnableConfig(configurable={"thread_id": "ask"}, callbacks=[watch])
    if as_json:
        state = _invoke(graph, question, chosen, config)
        told = {name: state.get(name) for name in _REPORTED}
        told |= {name: state[name] for name in _REPORTED_BY_SOME if name in state}
        print_json({"method": method} | told | {"seconds": watch.seconds})
        return 0
    trace = Trace(Console(highlight=False), verbose=verbose, everything=everything)
    _stream(graph, question, chosen, config, trace)
    trace.spent(watch.seconds)
    return EXIT_CODES[trace.certainty]


def _invoke(
    graph: Runnable[Any, Any], question: str, chosen: Settings, config: RunnableConfig
) -> Mapping[str, Any]:
    """Run to the end, asking a human whenever the graph interrupts."""
    state = graph.invoke({"question": question}, config, context=chosen)
    while INTERRUPT in state:
        answer = _confirmed(state[INTERRUPT][0].value)
        state = graph.invoke(Command(resume=answer), config, context=chosen)
    return dict(state)


def _stream(
    graph: Runnable[Any, Any],
    question: str,
    chosen: Settings,
    config: RunnableConfig,
    trace: Trace,
) -> None:
    given: Any = {"question": question}
    while given is not None:
        asked = None
        for _, mode, chunk in graph.stream(
            given, config, context=chosen, stream_mode=["updates", "messages"], subgraphs=True
        ):
            if mode == "updates" and INTERRUPT in chunk:
                asked = chunk[INTERRUPT][0]
            _show(trace, mode, chunk)
        given = None if asked is None else Command(resume=_confirmed(asked.value))


def _show(trace: Trace, mode: str, chunk: Any) -> None:
    if mode == "messages":
        message, metadata = chunk
        if metadata.get("langgraph_node") in {"generate", "combine"}:
            trace.token(message.text, message.id)
        return
    for node, update in chunk.items():
        if node != INTERRUPT:
            trace.update(node, update)


def _confirmed(request: Mapping[str, Any]) -> str | dict[str, str]:
    """Show the query and the reason on standard error, and read the decision.

    An empty line or "y" approves, "n" refuses, anything else is the new query. The end of the input
    refuses.
    """
    console = Console(stderr=True, highlight=False)
    console.print(f"[bold]confirm[/]   {safe(request['reason'])}", soft_wrap=True)
    console.print(f"  The web would be searched for: [bold]{safe(request['query'])}[/]")
    console.print(r"  Search? \[Y]es, \[n]o, or another query: ", end="")
    line = sys.stdin.readline()
    if not line:
        console.print()
        return "refuse"
    answer = line.strip()
    return _ANSWERS.get(answer.lower()) or {"query": answer}

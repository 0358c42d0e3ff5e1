"""`crag ask`: run a graph on a question and show its decisions."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from rich.console import Console

from crag.cli.choose import environment, settings
from crag.cli.confirm import decide
from crag.cli.show import Trace
from crag.factory import choose_parts
from crag.graph import build_crag, build_rag, build_self_crag, build_self_rag
from crag.settings import Settings

_BUILDERS = {
    "crag": build_crag,
    "rag": build_rag,
    "self-rag": build_self_rag,
    "self-crag": build_self_crag,
}
_THREAD = RunnableConfig(configurable={"thread_id": "ask"})
INTERRUPT = "__interrupt__"
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
    "citations",
    "abstained",
    "events",
    "usage",
)
_REFLECTED = ("approximation", "choices", "passages", "critiques", "reflection")  # fmt: skip


def run(  # noqa: PLR0913 - the options of the command
    question: str,
    location: str | None,
    method: str,
    assignments: Sequence[str],
    *,
    verbose: bool,
    as_json: bool,
) -> None:
    """Answer `question`; problems found before the run raise a `CragError`."""
    chosen = settings(assignments)
    parts = choose_parts(environment(location), index_must_exist=True)
    checkpointer = InMemorySaver() if chosen.confirm_web else None
    graph = _BUILDERS[method](parts, checkpointer=checkpointer)
    if as_json:
        state = _invoke(graph, question, chosen)
        names = _REPORTED + (_REFLECTED if method.startswith("self") else ())
        report = {"method": method} | {name: state.get(name) for name in names}
        sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")
    else:
        _stream(graph, question, chosen, Trace(Console(highlight=False), verbose=verbose))


def _invoke(graph: Runnable[Any, Any], question: str, chosen: Settings) -> Mapping[str, Any]:
    """Run to the end, asking a human whenever the graph interrupts."""
    state = graph.invoke({"question": question}, _THREAD, context=chosen)
    while INTERRUPT in state:
        answer = decide(state[INTERRUPT][0].value)
        state = graph.invoke(Command(resume=answer), _THREAD, context=chosen)
    return dict(state)


def _stream(graph: Runnable[Any, Any], question: str, chosen: Settings, trace: Trace) -> None:
    given: Any = {"question": question}
    while given is not None:
        asked = None
        for _, mode, chunk in graph.stream(
            given, _THREAD, context=chosen, stream_mode=["updates", "messages"], subgraphs=True
        ):
            if mode == "updates" and INTERRUPT in chunk:
                asked = chunk[INTERRUPT][0]
            _show(trace, mode, chunk)
        given = None if asked is None else Command(resume=decide(asked.value))


def _show(trace: Trace, mode: str, chunk: Any) -> None:
    if mode == "messages":
        message, metadata = chunk
        if metadata.get("langgraph_node") == "generate":
            trace.token(message.text)
        return
    for node, update in chunk.items():
        if node != INTERRUPT:
            trace.update(node, update)

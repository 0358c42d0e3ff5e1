"""`crag ask`: run a graph on a question and show what it decides as it does so."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import Runnable
from rich.console import Console

from crag.cli.choose import environment, settings
from crag.cli.show import Trace
from crag.compose import choose_parts
from crag.graph import build_crag, build_rag
from crag.settings import Settings

_BUILDERS = {"crag": build_crag, "rag": build_rag}
_REPORTED = (
    "question", "action", "scores", "thresholds", "query", "internal", "external", "knowledge",
    "answer", "citations", "abstained", "events", "usage",
)  # fmt: skip


def run(  # noqa: PLR0913 - the options of the command
    question: str,
    location: str | None,
    method: str,
    assignments: Sequence[str],
    *,
    verbose: bool,
    as_json: bool,
) -> None:
    """Answer `question`; what can be wrong before the run raises a `CragError`."""
    chosen = settings(assignments)
    parts = choose_parts(environment(location), index_must_exist=True)
    graph = _BUILDERS[method](parts)
    if as_json:
        state = graph.invoke({"question": question}, context=chosen)
        report = {"method": method} | {name: state.get(name) for name in _REPORTED}
        sys.stdout.write(json.dumps(report, ensure_ascii=False) + "\n")
    else:
        _stream(graph, question, chosen, Trace(Console(highlight=False), verbose=verbose))


def _stream(graph: Runnable[Any, Any], question: str, chosen: Settings, trace: Trace) -> None:
    modes = ["updates", "messages"]
    for mode, chunk in graph.stream({"question": question}, context=chosen, stream_mode=modes):
        if mode == "messages":
            message, metadata = chunk
            if metadata.get("langgraph_node") == "generate":
                trace.token(message.text)
        else:
            for node, update in chunk.items():
                trace.update(node, update)

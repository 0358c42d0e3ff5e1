"""A LangChain callback handler that turns runs into spans and metrics.

Spans are those of graphs, nodes, models, retrievers and tools, by OpenTelemetry's conventions for
generative AI where they have one; the steps of LangChain in between have none. A run is counted by
the final state of its graph, so that no event or token counts twice where graphs are nested.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, get_args
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import LLMResult
from langgraph.constants import START
from langgraph.errors import GraphBubbleUp

from crag.events import EventKind
from crag.graph_registry import GRAPHS
from crag.state import Usage
from crag.telemetry.instruments import Instruments

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanKind, Tracer

_STEP = "graph:step:"
"""How the tag begins that LangGraph gives to the runs of nodes."""
_STATE = ("question", "events", "usage")
"""Keys that the state of a question has, and that of no branch."""
_KINDS = frozenset(get_args(EventKind))
_CANCELLED = (asyncio.CancelledError, KeyboardInterrupt)
_WANTED = {"ls_temperature": "temperature", "ls_max_tokens": "max_tokens"}

_logger = logging.getLogger(__name__)


@dataclass
class _Run:
    """A run that has begun and not ended."""

    name: str
    parent: "_Run | None"
    begun: int
    """Nanoseconds since the epoch, as spans count."""
    thread: str | None = None
    is_node: bool = False
    is_graph: bool = False
    is_counted: bool = False
    """The question was counted, by this graph or by one within it."""
    is_interrupted: bool = False
    span: "Span | None" = None
    model: dict[str, Any] | None = None
    """Attributes of a call of a model."""
    within: set[UUID] = field(default_factory=set)
    """Runs that began within it."""

    @property
    def seconds(self) -> float:
        return (time.time_ns() - self.begun) / 1e9

    def outwards(self) -> "Iterator[_Run]":
        """Yield the run, then each run around it."""
        run: _Run | None = self
        while run:
            yield run
            run = run.parent

    @property
    def context(self) -> "Context | None":
        """What links a measurement, or a span within, with the nearest span from here outwards."""
        from opentelemetry.trace import set_span_in_context

        nearest = next((run.span for run in self.outwards() if run.span), None)
        return set_span_in_context(nearest) if nearest else None

    @property
    def label(self) -> str:
        """The graph that answers, as metrics name it: programs can call a run anything."""
        graphs = (run.name for run in self.outwards() if run.name in GRAPHS)
        return next(graphs, "other")


class RunWatch(BaseCallbackHandler):
    """Watch the runs that it is a callback of; thread-safe.

    Without arguments it uses the providers that the program has set. Pass one object to all runs:
    each makes instruments of its own.
    """

    run_inline = True  # It takes microseconds, and order matters.

    def __init__(
        self, tracer: "Tracer | None" = None, instruments: Instruments | None = None
    ) -> None:
        from opentelemetry import metrics, trace

        self._tracer = tracer or trace.get_tracer("crag")
        self._instruments = instruments or Instruments(metrics.get_meter("crag"))
        self._runs: dict[UUID, _Run] = {}
        self._nodes: set[str] = set()
        """Nodes that ran, which alone are labels: a client can write any name into an event."""
        self._lock = threading.Lock()

    # Graphs and nodes

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:
        """Begin the span of a node, and that of its graph if this is the first one."""
        run = self._begin(run_id, serialized, about)
        is_step = any(tag.startswith(_STEP) for tag in about.get("tags") or ())
        run.is_node = is_step and run.name != START
        if run.is_node and run.parent:
            self._nodes.add(run.name)
            self._become_graph(run.parent)
            names = {"crag.node": run.name, "crag.graph": run.label}
            run.span = self._span(run.name, run, names)
        elif run.name in GRAPHS:
            self._become_graph(run)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """End the span of a node, or of a graph with the outcome in its final state."""
        if run := self._runs.pop(run_id, None):
            if run.is_graph and isinstance(outputs, Mapping):
                self._count(run, outputs)
            self._end_chain(run, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End a node or a graph that raised; an interrupt for a human is no failure."""
        if not (run := self._runs.pop(run_id, None)):
            return
        if isinstance(error, GraphBubbleUp):
            for around in run.outwards():
                around.is_interrupted = True
            self._end_chain(run, None)
            return
        if run.is_graph and run.name in GRAPHS and not run.is_counted:
            outcome = "cancelled" if isinstance(error, _CANCELLED) else "error"
            self._finish(run, {}, outcome, {"error.type": type(error).__name__})
        self._end_chain(run, error)

    def _become_graph(self, run: _Run) -> None:
        with self._lock:
            if run.is_graph:
                return
            run.is_graph = True
            if run.parent and run.parent.is_node and run.parent.name == run.name:
                return  # A graph that is a node has the span of the node.
            names = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": run.name}
            if run.thread:
                names["gen_ai.conversation.id"] = run.thread
            run.span = self._span(f"invoke_workflow {run.name}", run, names)

    def _end_chain(self, run: _Run, error: BaseException | None) -> None:
        if run.is_node and run.parent:
            labels = {"crag.node": run.name, "crag.graph": run.label} | _type_of(error)
            self._instruments.node_duration.record(run.seconds, labels, run.context)
        self._end(run, error)

    def _count(self, run: _Run, state: Mapping[str, Any]) -> None:
        """Count a question by its final state; an interrupted one counts when it has ended."""
        if run.is_counted or any(name not in state for name in _STATE):
            return
        if run.is_interrupted:
            self._finish(run, {}, "interrupted", {})
            return
        outcome = "answered" if state.get("answer") else "no_answer"
        special = {"nothing_asked": "nothing_asked", "not_found": "abstained"}
        self._finish(run, state, special.get(state.get("outcome") or "", outcome), {})

    def _finish(
        self, run: _Run, state: Mapping[str, Any], outcome: str, failure: Mapping[str, str]
    ) -> None:
        for around in run.outwards():
            around.is_counted = True
        meters, context = self._instruments, run.context
        graph = {"crag.graph": run.label}
        action = str(state.get("action") or "none")
        attributes = {**graph, "crag.outcome": outcome, **failure}
        meters.questions.add(1, {**attributes, "crag.action": action}, context)
        meters.question_duration.record(run.seconds, attributes, context)
        events = [
            (_known(entry["kind"], _KINDS), _known(entry["node"], self._nodes))
            for entry in state.get("events", ())
        ]
        spent: Mapping[str, Any] = state.get("usage", {})
        usage = {name: spent[name] for name in Usage.__annotations__ if spent.get(name)}
        for event, node in events:
            kind = {"crag.event.kind": event, "crag.node": node}
            meters.events.add(1, {**graph, **kind}, context)
            if run.span:
                run.span.add_event("crag.event", kind)
        for name, amount in usage.items():
            meters.usage.add(amount, {**graph, "crag.usage.name": name}, context)
        if run.span:
            run.span.set_attributes({**attributes, "crag.action": action})
            run.span.set_attributes({f"crag.usage.{name}": much for name, much in usage.items()})
        logged = {
            "graph": run.label, "action": action, "outcome": outcome, **failure,
            "seconds": round(run.seconds, 3), "events": [event for event, _ in events],
            "usage": usage,
            **({"thread_id": run.thread} if run.thread else {}), **_ids_of(run.span),
        }  # fmt: skip
        _logger.info("question", extra={"told": logged})

    # Models, retrievers and tools

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, **about: Any
    ) -> None:
        """Begin a call of a chat model."""
        self._begin_model(run_id, "chat", serialized, about)

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **about: Any) -> None:
        """Begin a call of a model that completes text."""
        self._begin_model(run_id, "text_completion", serialized, about)

    def _begin_model(
        self, run_id: UUID, operation: str, kind: Any, about: Mapping[str, Any]
    ) -> None:
        from opentelemetry.trace import SpanKind

        run = self._begin(run_id, kind, about)
        known = about.get("metadata") or {}
        wanted = about.get("invocation_params") or {}
        name = known.get("ls_model_name") or wanted.get("model") or run.name
        run.model = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": str(known.get("ls_provider") or "unknown"),
            "gen_ai.request.model": str(name),
        }
        attributes = {
            f"gen_ai.request.{name}": known[key]
            for key, name in _WANTED.items()
            if isinstance(known.get(key), int | float)
        }
        span = f"{operation} {name}"
        run.span = self._span(span, run, {**run.model, **attributes}, SpanKind.CLIENT)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        """End a call of a model with its tokens."""
        run = self._runs.pop(run_id, None)
        if not (run and run.model):
            return
        labels, context = run.model, run.context
        replied: dict[str, Any] = {}
        for kind, count in _tokens_of(response).items():
            replied[f"gen_ai.usage.{kind}_tokens"] = count
            tokens = {**labels, "gen_ai.token.type": kind}
            self._instruments.model_tokens.record(count, tokens, context)
        self._instruments.model_duration.record(run.seconds, labels, context)
        if run.span:
            run.span.set_attributes(replied)
        self._end(run, None)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End a call of a model that failed."""
        if (run := self._runs.pop(run_id, None)) and run.model:
            labels = {**run.model, **_type_of(error)}
            self._instruments.model_duration.record(run.seconds, labels, run.context)
            self._end(run, error)

    def on_retriever_start(
        self, serialized: Any, query: Any, *, run_id: UUID, **about: Any
    ) -> None:
        """Begin a retrieval."""
        run = self._begin(run_id, serialized, about)
        names = {"gen_ai.operation.name": "retrieval"}
        run.span = self._span(f"retrieval {run.name}", run, names)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **_: Any) -> None:
        """End a retrieval with how many documents it found."""
        if run := self._runs.pop(run_id, None):
            if run.span:
                run.span.set_attribute("crag.documents", len(documents))
            self._end(run, None)

    def on_tool_start(self, serialized: Any, input_str: Any, *, run_id: UUID, **about: Any) -> None:
        """Begin a call of a tool."""
        run = self._begin(run_id, serialized, about)
        names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": run.name}
        run.span = self._span(f"execute_tool {run.name}", run, names)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """End a call of a tool."""
        if run := self._runs.pop(run_id, None):
            self._end(run, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End a call of a tool, or a retrieval, that failed."""
        if run := self._runs.pop(run_id, None):
            self._end(run, error)

    on_retriever_error = on_tool_error

    # Spans

    def _begin(self, run_id: UUID, kind: Any, about: Mapping[str, Any]) -> _Run:
        """Remember a run; `kind` is what LangChain knows of its class, which may be nothing."""
        metadata = about.get("metadata") or {}
        thread = metadata.get("thread_id")
        run = _Run(
            name=str(about.get("name") or (kind or {}).get("name") or "unnamed"),
            parent=self._runs.get(about.get("parent_run_id") or run_id),
            begun=time.time_ns(),
            thread=str(thread) if thread else None,
        )
        self._runs[run_id] = run
        if run.parent:
            run.parent.within.add(run_id)
        return run

    def _span(
        self, name: str, run: _Run, attributes: Mapping[str, Any], kind: "SpanKind | None" = None
    ) -> "Span":
        from opentelemetry.trace import SpanKind

        return self._tracer.start_span(
            name, run.context, kind or SpanKind.INTERNAL, dict(attributes), start_time=run.begun
        )

    def _end(self, run: _Run, error: BaseException | None) -> None:
        from opentelemetry.trace import StatusCode

        for run_id in run.within:
            # LangChain does not say of a model or a retriever that it was cancelled.
            if left := self._runs.pop(run_id, None):
                self._end(left, error)
        if not run.span:
            return
        if run.is_interrupted:
            run.span.set_attribute("crag.interrupted", value=True)
        if error is not None:
            # Its message may hold what was asked or found.
            run.span.set_attributes(_type_of(error))
            run.span.set_status(StatusCode.ERROR)
        run.span.end()


def _known(name: str, names: Collection[str]) -> str:
    return name if name in names else "other"


def _type_of(error: BaseException | None) -> dict[str, str]:
    return {"error.type": type(error).__name__} if error else {}


def _ids_of(span: "Span | None") -> dict[str, str]:
    """Return what finds the trace of a log line, if there is one."""
    context = span.get_span_context() if span else None
    if context is None or not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def _tokens_of(response: LLMResult) -> dict[str, int]:
    """Return the tokens that a model read and wrote, if the reply reports them."""
    tokens: dict[str, int] = {}
    for generations in response.generations:
        for generation in generations[:1]:
            counts = getattr(getattr(generation, "message", None), "usage_metadata", None) or {}
            for kind in ("input", "output"):
                if isinstance(count := counts.get(f"{kind}_tokens"), int):
                    tokens[kind] = tokens.get(kind, 0) + count
    return tokens

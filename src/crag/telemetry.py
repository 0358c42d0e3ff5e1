"""Traces and a counter of questions, sent where OpenTelemetry's variables say; off without them.

The traces are OpenInference's of LangChain: a span for each graph, node, model, retriever and tool.
What was asked, found and answered is hidden, unless its variables (OPENINFERENCE_HIDE_INPUTS and so
on) are set otherwise. The counter `crag.questions` tells action and outcome.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook

from crag.extras import how_to_install

_HIDE_INPUTS = "OPENINFERENCE_HIDE_INPUTS"
_HIDDEN = (_HIDE_INPUTS, "OPENINFERENCE_HIDE_OUTPUTS", "OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS")
_ENDPOINTS = tuple(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in ("", "TRACES_", "METRICS_"))
_logger = logging.getLogger(__name__)


@cache
def start() -> None:
    """Watch all runs of this process from now on, if it is wanted; a second call changes nothing.

    A program that has set a tracer provider has chosen itself what watches it: nothing is started.
    """
    is_off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if is_off or not any(map(os.environ.get, _ENDPOINTS)):
        return
    try:
        from openinference.instrumentation.langchain import LangChainInstrumentor
        from opentelemetry import metrics, trace
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        _logger.warning("No telemetry: %s. %s", error, how_to_install("serve"))
        return
    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return
    for name, value in {"OTEL_SERVICE_NAME": "crag", **dict.fromkeys(_HIDDEN, "true")}.items():
        os.environ.setdefault(name, value)
    tracers = TracerProvider()
    if os.environ[_HIDE_INPUTS].lower() == "true":
        tracers.add_span_processor(_without_messages())
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracers)
    LangChainInstrumentor().instrument(tracer_provider=tracers)
    if os.environ.get("OTEL_METRICS_EXPORTER") != "none":
        metrics.set_meter_provider(
            MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())])
        )
        counter = _Questions()  # The default of a context variable is seen in every thread.
        register_configure_hook(ContextVar("crag_questions", default=counter), inheritable=True)


def _without_messages() -> Any:
    """Return what leaves of an error its type, since its message may hold what was asked."""
    from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor
    from opentelemetry.trace import Status

    class WithoutMessages(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            kept = []
            for event in span.events:
                kind = (event.attributes or {}).get("exception.type", "")
                kept.append(Event(event.name, {"exception.type": kind}, event.timestamp))
            span._events, span._status = kept, Status(span.status.status_code)  # noqa: SLF001

    return WithoutMessages()


class _Questions(BaseCallbackHandler):
    """Counts the questions that graphs ended, by their final states."""

    run_inline = True

    def __init__(self) -> None:
        from opentelemetry import metrics

        meter = metrics.get_meter("crag")
        self._counter = meter.create_counter("crag.questions", "{question}", "Questions asked")

    def on_chain_end(self, outputs: Any, *, tags: Sequence[str] | None = None, **_: Any) -> None:
        """Count a final state; a graph that is a node of another one has the tag of a step."""
        is_node = any(tag.startswith("graph:step:") for tag in tags or ())
        final = outputs if isinstance(outputs, Mapping) and not is_node else {}
        if final.get("outcome") and "question" in final:  # No node writes both.
            told = {f"crag.{name}": str(final.get(name)) for name in ("action", "outcome")}
            self._counter.add(1, told)

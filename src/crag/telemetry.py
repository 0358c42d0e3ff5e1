"""Traces, sent where OpenTelemetry's variables say; off without them.

The traces are OpenInference's of LangChain: a span for each graph, node, model, retriever and tool.
What was asked, found and answered is hidden, unless its variables (OPENINFERENCE_HIDE_INPUTS and so
on) are set otherwise.
"""

import logging
import os
from functools import cache
from typing import Any

from crag.extras import how_to_install

_HIDE_INPUTS = "OPENINFERENCE_HIDE_INPUTS"
_HIDDEN = (_HIDE_INPUTS, "OPENINFERENCE_HIDE_OUTPUTS", "OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS")
_ENDPOINTS = tuple(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in ("", "TRACES_"))
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
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
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

"""Switch telemetry on for a process, as CRAG_TELEMETRY, CRAG_LOGS and OTEL_… variables say.

OpenTelemetry's own classes read its variables: where to send, how often, headers, certificates, the
sampler, the attributes of the service.
"""

import logging
import os
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args
from uuid import uuid4

from langchain_core.tracers.context import register_configure_hook

from crag.errors import MissingPackageError, SettingsError
from crag.extras import require
from crag.runtime.environment import Environment
from crag.telemetry.instruments import Instruments
from crag.telemetry.logs import write_json_logs
from crag.telemetry.watch import RunWatch

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.trace import Tracer

_ENDPOINTS = tuple(f"OTEL_EXPORTER_OTLP_{signal}ENDPOINT" for signal in ("", "TRACES_", "METRICS_"))
_PROTOCOLS = {"http/protobuf": "http", "grpc": "grpc"}
_logger = logging.getLogger(__name__)
Signal = Literal["trace", "metric"]


def start(environment: Environment | None = None) -> Instruments | None:
    """Watch all LangChain runs of this process from now on, if the environment asks for it.

    A program that has set a tracer provider keeps it, and its meter provider; otherwise both are
    made from OpenTelemetry's variables. A second call changes nothing.

    Returns:
        The instruments, for what is no run; None if no metrics are wanted.

    Raises:
        SettingsError: a variable has a value that is not allowed.
        MissingPackageError: CRAG_TELEMETRY is on, and OpenTelemetry is not installed.
    """
    chosen = environment or Environment()
    return _started(chosen.telemetry, chosen.logs)


def check(telemetry: str, logs: str) -> bool:
    """Return whether traces and metrics are wanted; nothing is started.

    Raises:
        SettingsError: a variable has a value that is not allowed.
        MissingPackageError: CRAG_TELEMETRY is on, and OpenTelemetry is not installed.
    """
    if logs not in {"text", "json"}:
        raise SettingsError("CRAG_LOGS", logs, "allowed are text and json")
    is_on = _is_on(telemetry)
    if is_on:
        for signal in get_args(Signal):
            _exporters(signal)
    return is_on


@cache
def _started(telemetry: str, logs: str) -> Instruments | None:
    is_on = check(telemetry, logs)
    if logs == "json":
        write_json_logs()
    if not is_on and logs == "text":
        return None
    from opentelemetry.metrics import NoOpMeter
    from opentelemetry.trace import NoOpTracer

    tracer, meter = _providers() if is_on else (NoOpTracer(), NoOpMeter("crag"))
    instruments = Instruments(meter)
    watch = RunWatch(tracer, instruments)
    # The default of a context variable is seen in every thread and task.
    register_configure_hook(ContextVar("crag_telemetry", default=watch), inheritable=True)
    return instruments if is_on else None


def _is_on(telemetry: str) -> bool:
    match telemetry:
        case "off":
            return False
        case "auto" if not any(map(os.environ.get, _ENDPOINTS)):
            return False
        case "auto" | "on":
            pass
        case _:
            raise SettingsError("CRAG_TELEMETRY", telemetry, "allowed are auto, on and off")
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    try:
        require("telemetry", "CRAG_TELEMETRY", "opentelemetry", "opentelemetry.sdk")
    except MissingPackageError as error:
        if telemetry == "on":
            raise
        _logger.warning("No telemetry: %s", error)
        return False
    return True


def _providers() -> "tuple[Tracer, Meter]":
    from opentelemetry import metrics, trace

    if not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return trace.get_tracer("crag"), metrics.get_meter("crag")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = _resource()
    tracers = TracerProvider(resource=resource)
    if exporters := _exporters("trace"):
        tracers.add_span_processor(BatchSpanProcessor(exporters.OTLPSpanExporter()))
    exporters = _exporters("metric")
    readers = [PeriodicExportingMetricReader(exporters.OTLPMetricExporter())] if exporters else []
    meters = MeterProvider(readers, resource)
    return tracers.get_tracer("crag"), meters.get_meter("crag")


def _resource() -> "Resource":
    """Return the resource of this process; its own id keeps its counters apart from others'."""
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create({"service.instance.id": str(uuid4())})
    is_named = not str(resource.attributes["service.name"]).startswith("unknown_service")
    return resource if is_named else resource.merge(Resource({"service.name": "crag"}))


def _exporters(signal: Signal) -> Any:
    """Return the module that exports a signal, None if it is switched off.

    Raises:
        SettingsError: the variables name an exporter or a protocol that there is not.
        MissingPackageError: its package is missing.
    """
    plural = f"{signal.upper()}S"
    wanted = os.environ.get(f"OTEL_{plural}_EXPORTER") or "otlp"
    if wanted == "none":
        return None
    if wanted != "otlp":
        raise SettingsError(f"OTEL_{plural}_EXPORTER", wanted, "allowed are otlp and none")
    general = "OTEL_EXPORTER_OTLP_PROTOCOL"
    variable = f"OTEL_EXPORTER_OTLP_{plural}_PROTOCOL"
    variable = variable if os.environ.get(variable) else general
    protocol = os.environ.get(variable) or "http/protobuf"
    if protocol not in _PROTOCOLS:
        raise SettingsError(variable, protocol, f"allowed are {' and '.join(_PROTOCOLS)}")
    module = f"opentelemetry.exporter.otlp.proto.{_PROTOCOLS[protocol]}"
    require("telemetry", f"telemetry over {protocol}", module)
    return import_module(f"{module}.{signal}_exporter")

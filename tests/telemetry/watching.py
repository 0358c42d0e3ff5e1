"""A watch whose spans and metrics stay in memory."""

from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from crag.telemetry import Instruments, RunWatch

Point = tuple[dict[str, Any], float]


class Watched:
    """What was told to a back end."""

    def __init__(self, *readers: MetricReader) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        meters = MeterProvider([self._reader, *readers], shutdown_on_exit=False)
        self.instruments = Instruments(meters.get_meter("test"))
        self.watch = RunWatch(tracers.get_tracer("test"), self.instruments)

    @property
    def spans(self) -> list[ReadableSpan]:
        """The spans that have ended, in the order in which they began."""
        return sorted(self._spans.get_finished_spans(), key=lambda one: one.start_time or 0)

    @property
    def tree(self) -> set[tuple[str | None, str]]:
        """Each span's name, after that of the span around it."""
        names = {one.context.span_id: one.name for one in self.spans if one.context}
        return {(names.get(one.parent.span_id) if one.parent else None, one.name)
                for one in self.spans}  # fmt: skip

    def span(self, name: str) -> dict[str, Any]:
        """Return the attributes of the only span with a name."""
        (found,) = (one for one in self.spans if one.name == name)
        return dict(found.attributes or {})

    @property
    def metrics(self) -> set[str]:
        """The names of all metrics that were told."""
        return {one.name for one in self._metrics()}

    def points(self, metric: str) -> list[Point]:
        """Return attributes with sum, last value, or count of a histogram."""
        return [
            (dict(point.attributes or {}),
             point.count if hasattr(point, "count") else point.value)
            for one in self._metrics() if one.name == metric for point in one.data.data_points
        ]  # fmt: skip

    def _metrics(self) -> Iterator[Any]:
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                yield from scope.metrics

    def everything(self) -> str:
        """Return all that was told, as one text."""
        return "".join(one.to_json() for one in self.spans) + "".join(
            one.to_json() for one in self._metrics()
        )

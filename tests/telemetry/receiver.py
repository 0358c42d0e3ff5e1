"""An OTLP receiver on loopback: what a collector would get over HTTP."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver(ThreadingHTTPServer):
    """Keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []
        self.authorization: set[str | None] = set()
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        self.resources: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        server = self.server
        server.bodies.append(body)
        server.authorization.add(self.headers.get("authorization"))
        if self.path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(body)
            server.spans += [
                span
                for one in traces.resource_spans
                for scope in one.scope_spans
                for span in scope.spans
            ]
            found = [one.resource for one in traces.resource_spans]
        else:
            metrics = ExportMetricsServiceRequest.FromString(body)
            server.metrics += [
                metric
                for one in metrics.resource_metrics
                for scope in one.scope_metrics
                for metric in scope.metrics
            ]
            found = [one.resource for one in metrics.resource_metrics]
        server.resources += [
            {one.key: one.value.string_value for one in resource.attributes} for resource in found
        ]
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

"""What a collector is sent: which questions ended how, and nothing of what they said."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from crag.telemetry import start
from tests.loopback import Loopback, started

RUNS = """
from langchain_core.documents import Document
from crag.graph import build_crag
from crag.langchain import as_tool
from crag.parts import Hit, Parts
from crag.telemetry import start
from crag.testing import FakeChatModel, FakeEvaluator, FakeRetriever, FakeSearcher

start()
class Broken(FakeRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        raise ValueError("SECRETERROR " + query)

def graph(score, retriever):
    hits = [Hit("SECRETTITLE", "http://a.example", "SECRETSNIPPET is here and read.")]
    model = FakeChatModel(replies=["SECRETANSWER [1]."])
    return build_crag(Parts(retriever=retriever, evaluator=FakeEvaluator(score), model=model,
                            searcher=FakeSearcher(hits)))

found = FakeRetriever(documents=[Document("SECRETDOCUMENT was written by Ada.")])
graph(0.9, found).invoke({"question": "SECRETQUESTION who?"}, {"metadata": {"thread_id": "t-7"}})
graph(-0.9, found).invoke({"question": "SECRETQUESTION who?"})
as_tool(graph(0.9, Broken(documents=[]))).invoke({"question": "SECRETQUESTION who?"})
"""


class Receiver(Loopback):
    """What a collector gets over HTTP."""

    @staticmethod
    def parse(body: bytes) -> dict[str, Any]:
        return {"body": body}

    def spans_and_metrics(self) -> tuple[list[Any], list[Any]]:
        spans, metrics = list[Any](), list[Any]()
        for sent in self.requests:
            if sent["path"] == "/v1/traces":
                for told in ExportTraceServiceRequest.FromString(sent["body"]).resource_spans:
                    spans += [span for scope in told.scope_spans for span in scope.spans]
            else:
                for one in ExportMetricsServiceRequest.FromString(sent["body"]).resource_metrics:
                    metrics += [metric for scope in one.scope_metrics for metric in scope.metrics]
        return spans, metrics


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with started(Receiver({})) as found:
        yield found


def ran(code: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_spans_and_counter_say_what_happened_and_no_text(receiver: Receiver) -> None:
    ran(
        RUNS, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20of-the-test",
    )  # fmt: skip
    assert b"SECRET" not in b"".join(sent["body"] for sent in receiver.requests)
    assert {sent["authorization"] for sent in receiver.requests} == {"Bearer of-the-test"}
    assert all(b"service.name\x12\x06\n\x04crag" in sent["body"] for sent in receiver.requests)
    spans, (counter,) = receiver.spans_and_metrics()
    roots = [one.name for one in spans if not one.parent_span_id]
    assert roots == ["crag", "crag", "ask_crag"]
    names = {one.name for one in spans}
    assert names >= {"retrieve", "grade", "FakeChatModel", "FakeRetriever"}
    (failed,) = (one for one in spans if one.name == "Broken")
    (event,) = failed.events
    told = {one.key: one.value.string_value for one in event.attributes}
    assert (failed.status.code, told) == (2, {"exception.type": "ValueError"})
    assert counter.name == "crag.questions"
    counted = [
        {one.key: one.value.string_value for one in point.attributes} | {"": point.as_int}
        for point in counter.sum.data_points
    ]
    assert sorted((one["crag.action"], one["crag.outcome"], one[""]) for one in counted) == [
        ("correct", "answered", 1), ("incorrect", "answered", 2),
    ]  # fmt: skip


OWN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider())
"""


@pytest.mark.parametrize(
    ("before", "variables"),
    [("", {}), ("", {"OTEL_SDK_DISABLED": "true"}), (OWN, {})],
    ids=["no address", "off", "own provider"],
)
def test_nothing_is_watched_off_or_where_the_program_has_a_provider(
    before: str, variables: Mapping[str, str], receiver: Receiver
) -> None:
    address = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url} if before or variables else {}
    ran(f"{before}{RUNS}", **address, **variables)
    assert receiver.requests == []


def test_a_missing_package_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "openinference.instrumentation.langchain", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    start.__wrapped__()
    command = r"pip install -c constraints\.txt '\.\[serve\]'"
    assert re.search(rf"No telemetry: .*{command}", caplog.text)

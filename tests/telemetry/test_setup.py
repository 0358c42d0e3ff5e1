"""Telemetry as users switch it on: `crag ask` tells a real receiver, and nothing without one."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.callbacks import CallbackManager

from crag.errors import MissingPackageError, SettingsError
from crag.runtime.environment import Environment
from crag.telemetry import RunWatch, setup, start
from tests.commands import Done, crag, crag_process
from tests.telemetry.receiver import Receiver, receiving

QUESTION = "Who designed the lighthouse of Cape Merrow?"
TEXT = "The lighthouse of Cape Merrow was designed by Edith Halloran."


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("asked")
    (folder / "light.md").write_text(f"# Lights\n\n{TEXT}\n", "utf-8")
    assert crag("index", folder / "light.md", "--index", folder / "index").returncode == 0
    return folder / "index"


def ask(index: Path, **variables: str) -> Done:
    return crag_process("ask", QUESTION, "--json", "--index", index, environment=variables)


def test_crag_ask_tells_a_receiver_and_its_log(index: Path, receiver: Receiver) -> None:
    done = ask(
        index, CRAG_LOGS="json", OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20of-the-test",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)["action"]) == (0, "correct")
    assert receiver.authorization == {"Bearer of-the-test"}
    (root,) = (one for one in receiver.spans if not one.parent_span_id)
    assert root.name == "invoke_workflow crag"
    assert {one.trace_id for one in receiver.spans} == {root.trace_id}
    assert {"retrieve", "grade", "refine", "generate"} <= {one.name for one in receiver.spans}
    names = {one.name for one in receiver.metrics}
    assert {"crag.questions", "crag.node.duration", "crag.usage"} <= names
    for resource in receiver.resources:
        assert resource["service.name"] == "crag"
        assert resource["service.instance.id"]
        assert resource["deployment.environment.name"] == "test"
    (line,) = (json.loads(line) for line in done.stderr.splitlines())
    assert (line["message"], line["action"], line["outcome"]) == ("question", "correct", "answered")
    assert line["trace_id"] == root.trace_id.hex()
    sent = b"".join(receiver.bodies) + done.stderr.encode()
    words = [b"lighthouse", b"Merrow", b"Halloran", b"designed", b"light.md"]
    assert [word for word in words if word in sent] == []


def test_off_is_off(index: Path, receiver: Receiver) -> None:
    setup._started.cache_clear()  # noqa: SLF001 - a process begins once
    for variable in ({"CRAG_TELEMETRY": "off"}, {"OTEL_SDK_DISABLED": "true"}):
        wanted = variable | {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
        done = crag("ask", QUESTION, "--json", "--index", index, environment=wanted)
        assert (done.returncode, done.stderr) == (0, "")
    assert receiver.bodies == []


@pytest.mark.thorough
def test_a_receiver_that_is_not_there_is_told_of_and_no_more(index: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    gone = ask(index, OTEL_EXPORTER_OTLP_ENDPOINT=nowhere, OTEL_EXPORTER_OTLP_TIMEOUT="1")
    assert (gone.returncode, json.loads(gone.stdout)["action"]) == (0, "correct")
    assert "127.0.0.1" in gone.stderr
    assert TEXT not in gone.stderr


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"CRAG_TELEMETRY": "yes"}, r"CRAG_TELEMETRY.*'yes'.*auto, on and off"),
        ({"CRAG_LOGS": "xml"}, r"CRAG_LOGS.*'xml'.*text and json"),
        ({"CRAG_TELEMETRY": "on", "OTEL_TRACES_EXPORTER": "zipkin"},
         r"OTEL_TRACES_EXPORTER.*'zipkin'.*otlp and none"),
        ({"CRAG_TELEMETRY": "on", "OTEL_TRACES_EXPORTER": "none",
          "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json"},
         r"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL.*http/protobuf and grpc"),
    ],
)  # fmt: skip
def test_a_value_that_is_not_allowed_is_refused(
    variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=message):
        start(Environment())


def test_without_an_endpoint_nothing_is_on() -> None:
    setup._started.cache_clear()  # noqa: SLF001 - a process begins once
    assert start(Environment()) is None
    assert not any(isinstance(one, RunWatch) for one in CallbackManager.configure().handlers)


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.sdk"])
def test_a_missing_package_is_an_error_only_where_telemetry_is_asked_for(
    missing: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    setup._started.cache_clear()  # noqa: SLF001 - a process begins once
    assert start(Environment()) is None
    command = r"pip install -c constraints\.txt '\.\[telemetry\]'"
    assert re.search(rf"No telemetry: .*{command}", caplog.text)
    monkeypatch.setenv("CRAG_TELEMETRY", "on")
    with pytest.raises(MissingPackageError, match=rf"CRAG_TELEMETRY.*{command}"):
        start(Environment())

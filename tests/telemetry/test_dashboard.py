"""Dashboard and guide name what the code exports, as Prometheus and OpenTelemetry name it."""

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from crag.errors import QuestionError
from crag.graph import build_crag
from crag.settings import Settings
from tests.telemetry.watching import Watched

ROOT = Path(__file__).parents[2]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana.json").read_text("utf-8"))
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
SELECTED, GROUPED = re.compile(r"\{(.*?)\}"), re.compile(r"by \((.*?)\)")
LABEL = re.compile(r"(\w+)=~?\"")


def metrics_of(expression: str) -> set[str]:
    """Return the metrics that an expression of PromQL reads, without labels."""
    bare = GROUPED.sub("", SELECTED.sub("", expression))
    return set(re.findall(r"\b(?:crag|gen_ai)_\w+", bare))


def labels_of(expression: str) -> set[str]:
    """Return the labels by which it selects or groups."""
    grouped = re.findall(r"\w+", " ".join(GROUPED.findall(expression)))
    return {*grouped, *LABEL.findall(" ".join(SELECTED.findall(expression)))}


class Exported(NamedTuple):
    """Everything that is told, by its names."""

    metrics: set[str]
    """As OpenTelemetry names them."""
    labels: dict[str, set[str]]
    """By the names that Prometheus gives the metrics."""


@pytest.fixture
def exported(make_parts: Any) -> Exported:
    reader = PrometheusMetricReader()
    try:
        told = Watched(reader)
        _happen(told, make_parts)
        measured = told.metrics
        families = text_string_to_metric_families(generate_latest(REGISTRY).decode())
        samples = [one for family in families for one in family.samples]
        labels = {one.name: set[str]() for one in samples}
        for one in samples:
            labels[one.name] |= set(one.labels)
        return Exported(measured, labels)
    finally:
        reader.shutdown()


def _happen(told: Watched, make_parts: Any) -> None:
    """Let everything happen that a metric counts."""
    spoken = AIMessage(
        "Ada Lovelace did [1][9].",
        usage_metadata={"input_tokens": 40, "output_tokens": 5, "total_tokens": 45},
    )
    graph = build_crag(make_parts(model=GenericFakeChatModel(messages=iter([spoken]))))
    prices = Settings(input_price=1000, output_price=10_000)
    graph.invoke({"question": "Who?"}, {"callbacks": [told.watch]}, context=prices)
    with pytest.raises(QuestionError):
        graph.invoke({"question": " "}, {"callbacks": [told.watch]})
    told.instruments.queue_length.set(3)
    told.instruments.queue_duration.record(0.1)
    told.instruments.running.set(2)


def test_the_dashboard_asks_for_metrics_and_labels_that_are_exported(exported: Exported) -> None:
    for expression in EXPRESSIONS:
        assert metrics_of(expression), expression
        for metric in metrics_of(expression):
            assert metric in exported.labels, expression
            assert labels_of(expression) <= exported.labels[metric], expression


def test_every_metric_is_on_the_dashboard_and_in_the_guide(exported: Exported) -> None:
    shown = set[str]().union(*map(metrics_of, EXPRESSIONS))
    bare = {re.sub(r"(_seconds)?_(total|bucket|sum|count)$", "", name) for name in shown}
    assert bare == {name.replace(".", "_") for name in exported.metrics}
    guide = (ROOT / "docs" / "guide" / "telemetry.md").read_text("utf-8")
    rows = set(re.findall(r"^\| `([\w.]+)` \| (?:counter|gauge|histogram)", guide, re.MULTILINE))
    assert rows == exported.metrics


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    variables = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
    assert variables["source"]["type"] == "datasource"
    asked = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD)))
    assert asked == {*variables, "__rate_interval", "__all"}
    places = [tuple(panel["gridPos"][side] for side in "xywh") for panel in PANELS]
    assert len({panel["id"] for panel in PANELS}) == len(set(places)) == len(PANELS)
    assert all(left + width <= 24 for left, _, width, _ in places)
    for panel in PANELS:
        assert panel["datasource"] == {"type": "prometheus", "uid": "${source}"}
        assert panel["title"]

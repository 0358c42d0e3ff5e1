import sys
from collections.abc import Callable
from typing import Any

import pytest

from crag.errors import MissingPackageError
from crag.papers.bench.examples import TASKS
from crag.papers.metrics import METRICS, Metric
from crag.papers.metrics.long_form import mauve, rouge_lsum

Make = Callable[..., Any]


def test_every_metric_is_named_once_and_defined_for_some_task() -> None:
    assert all(name == metric.name for name, metric in METRICS.items())
    assert all(metric.tasks and metric.tasks <= set(TASKS) for metric in METRICS.values())


@pytest.mark.parametrize("task", TASKS)
def test_every_metric_takes_every_row(example: Make, row: Make, task: str) -> None:
    for status in ("answered", "abstained", "failed"):
        pairs = [(example(task), row("poet", status=status))]
        for metric in METRICS.values():
            value = metric.score(*pairs[0])
            assert value is None or isinstance(value, float)
            assert metric.summarise(pairs) == value


def test_a_row_metric_is_the_mean_of_its_rows(example: Make, row: Make) -> None:
    metric = Metric(name="length", compute=lambda _, one: float(len(one["answer"])) or None)
    pairs = [(example(), row("ab")), (example(), row("abcd")), (example(), row(""))]
    assert metric.summarise(pairs) == 3.0


@pytest.mark.parametrize(
    ("package", "module", "call"),
    [
        ("rouge-score", "rouge_score.rouge_scorer", lambda _: rouge_lsum("a", ["a"])),
        ("mauve-text", "mauve", lambda pair: mauve("m").summarise([pair])),
    ],
)
def test_a_missing_package_is_named_with_its_command(
    example: Make, row: Make, package: str, module: str, call: Callable[[Any], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=f"Run: pip install {package}"):
        call((example("asqa", extra={"reference": "France."}), row("France")))


@pytest.mark.parametrize(
    ("reflection", "value"),
    [({"retrieved": True}, 1.0), ({"retrieved": False}, 0.0), ({}, None), (None, None)],
)
def test_retrieval_frequency_counts_what_was_decided(
    example: Any, row: Any, reflection: Any, value: float | None
) -> None:
    metric = METRICS["retrieval_frequency"]
    assert metric.score(example(), row(reflection=reflection)) == value

from collections.abc import Callable
from typing import Any

from crag.papers.metrics import METRICS

Make = Callable[..., Any]


def test_what_was_spent(example: Make, row: Make) -> None:
    usage = {"llm_calls": 2, "evaluated_texts": 13, "searches": 1, "input_tokens": 700}
    measured = row(usage=usage, seconds=1.5, cost=0.25)
    names = ["llm_calls", "evaluated_texts", "searches", "pages", "input_tokens", "seconds", "cost"]
    found = [METRICS[name].score(example(), measured) for name in names]
    assert found == [2.0, 13.0, 1.0, 0.0, 700.0, 1.5, 0.25]
    assert METRICS["cost"].score(example(), row(cost=None)) is None


def test_failed_rows_cost_too(example: Make, row: Make) -> None:
    pairs = [
        (example(), row(usage={"llm_calls": 2})),
        (example(), row(usage={"llm_calls": 4}, status="failed")),
        (example(), row(usage={"llm_calls": 0}, status="abstained")),
    ]
    assert METRICS["llm_calls"].summarise(pairs) == 2.0
    assert METRICS["failed"].summarise(pairs) == 1 / 3
    assert METRICS["abstained"].summarise(pairs) == 0.5

"""The cost of an answer: calls, tokens, seconds, money; and the share of abstentions and failures.

Failed rows count too, because they also cost something.
"""

from collections.abc import Callable

from crag.bench.examples import Example
from crag.bench.metrics.metric import Row, RowMetric, Unit


def _used(key: str) -> Callable[[Example, Row], float | None]:
    def compute(_: Example, row: Row) -> float | None:
        return float(row["usage"].get(key, 0))

    return compute


def _counted(name: str, unit: Unit = "count") -> RowMetric:
    return RowMetric(name=name, compute=_used(name), direction="lower", unit=unit, of_failed=True)


def _seconds(_: Example, row: Row) -> float | None:
    return float(row["seconds"])


def _cost(_: Example, row: Row) -> float | None:
    return None if row["cost"] is None else float(row["cost"])


def _abstained(_: Example, row: Row) -> float | None:
    return float(row["status"] == "abstained")


def _failed(_: Example, row: Row) -> float | None:
    return float(row["status"] == "failed")


LLM_CALLS = _counted("llm_calls")
"""Calls of a chat or reflecting model."""
EVALUATED_TEXTS = _counted("evaluated_texts")
"""Documents, strips and paragraphs that the evaluator scored."""
SEARCHES = _counted("searches")
PAGES = _counted("pages")
INPUT_TOKENS = _counted("input_tokens", "tokens")
"""As the model's replies count them; 0 where they do not."""
OUTPUT_TOKENS = _counted("output_tokens", "tokens")
SECONDS = RowMetric(
    name="seconds", compute=_seconds, direction="lower", unit="seconds", of_failed=True
)
"""Wall time of the question, including the wait for questions that run at the same time."""
COST = RowMetric(name="cost", compute=_cost, direction="lower", unit="dollars", of_failed=True)
"""None if no price is known."""
ABSTAINED = RowMetric(name="abstained", compute=_abstained, direction="neither")
"""The share of questions without an answer because no knowledge passed."""
FAILED = RowMetric(name="failed", compute=_failed, direction="lower", of_failed=True)
"""The share of questions without an answer because a part failed; quality metrics exclude them."""

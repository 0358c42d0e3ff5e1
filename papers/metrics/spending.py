"""The cost of an answer: calls, tokens, seconds, money; and the share of abstentions and failures.

Failed rows count too, because they also cost something.
"""

from functools import partial

from crag.papers.bench.examples import Example
from crag.papers.metrics.metric import MetricUnit, Row, RowMetric

_spent = partial(RowMetric, direction="lower", of_failed=True)


def _counted(name: str, unit: MetricUnit = "count") -> RowMetric:
    def compute(_: Example, row: Row) -> float:
        return float(row["usage"].get(name, 0))

    return _spent(name=name, compute=compute, unit=unit)


LLM_CALLS = _counted("llm_calls")
"""Calls of a chat or reflecting model."""
EVALUATED_TEXTS = _counted("evaluated_texts")
"""Documents, strips and paragraphs that the evaluator scored."""
SEARCHES = _counted("searches")
PAGES = _counted("pages")
INPUT_TOKENS = _counted("input_tokens", "tokens")
"""As the model's replies count them; 0 where they do not."""
OUTPUT_TOKENS = _counted("output_tokens", "tokens")
SECONDS = _spent(name="seconds", compute=lambda _, row: float(row["seconds"]), unit="seconds")
"""Wall time of the question, including the wait for questions that run at the same time."""
COST = _spent(
    name="cost",
    compute=lambda _, row: None if row["cost"] is None else float(row["cost"]),
    unit="dollars",
)
"""None if no price is known."""


def _retrieved(_: Example, row: Row) -> float | None:
    decided = (row["reflection"] or {}).get("retrieved")
    return None if decided is None else float(decided)


RETRIEVAL_FREQUENCY = RowMetric(name="retrieval_frequency", compute=_retrieved, direction="neither")
"""The share of questions for which the model decided to retrieve (Self-RAG, Fig. 3c)."""
ABSTAINED = RowMetric(
    name="abstained",
    compute=lambda _, row: float(row["status"] == "abstained"),
    direction="neither",
)
"""The share of questions without an answer because no knowledge passed."""
FAILED = _spent(name="failed", compute=lambda _, row: float(row["status"] == "failed"))
"""The share of questions without an answer because a part failed; quality metrics exclude them."""

METRICS = (
    LLM_CALLS,
    EVALUATED_TEXTS,
    SEARCHES,
    PAGES,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    SECONDS,
    COST,
    RETRIEVAL_FREQUENCY,
    ABSTAINED,
    FAILED,
)

"""The effect of refinement and the web on knowledge, without a generator.

Searching a text for a gold answer makes no sense for verdicts and option letters, so PubHealth and
ARC have no value here.
"""

from crag.papers.bench.examples import Example
from crag.papers.metrics.metric import ALL, LABELLED, Row, RowMetric

_TASKS = ALL - LABELLED - {"biography"}


def _number(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _kept(_: Example, row: Row) -> float | None:
    return _number(row["knowledge_holds_answer"]) if row["retrieved_holds_answer"] else None


def _found(_: Example, row: Row) -> float | None:
    without = row["retrieved_holds_answer"] is False
    return _number(row["knowledge_holds_answer"]) if without else None


def _words_kept(_: Example, row: Row) -> float | None:
    documents = row["documents_words"]
    return row["knowledge_words"] / documents if documents else None


RETRIEVED_RECALL = RowMetric(
    name="retrieved_recall",
    compute=lambda _, row: _number(row["retrieved_holds_answer"]),
    tasks=_TASKS,
)
"""The retrieved documents contain a gold answer."""
KNOWLEDGE_RECALL = RowMetric(
    name="knowledge_recall",
    compute=lambda _, row: _number(row["knowledge_holds_answer"]),
    tasks=_TASKS,
)
"""The knowledge for the generator contains a gold answer."""
ANSWER_KEPT = RowMetric(name="answer_kept", compute=_kept, tasks=_TASKS)
"""Of the questions whose documents have an answer: the knowledge still has one."""
ANSWER_FOUND = RowMetric(name="answer_found", compute=_found, tasks=_TASKS)
"""Of the questions whose documents have no answer: the knowledge has one, thanks to the web."""
KNOWLEDGE_WORDS = RowMetric(
    name="knowledge_words",
    compute=lambda _, row: float(row["knowledge_words"]),
    direction="lower",
    unit="words",
)
"""Words of the knowledge for the generator."""
WORDS_KEPT = RowMetric(name="words_kept", compute=_words_kept, direction="neither")
"""Words of knowledge per word retrieved; above 1 if the web added more than was dropped."""

METRICS = (
    RETRIEVED_RECALL,
    KNOWLEDGE_RECALL,
    ANSWER_KEPT,
    ANSWER_FOUND,
    KNOWLEDGE_WORDS,
    WORDS_KEPT,
)

"""Accuracy of the evaluator (CRAG, Table 4) and of the action.

The example must have the documents of the row's scores: if documents were removed, pass the example
without them.
"""

from collections.abc import Sequence

from crag.papers.bench.examples import Example
from crag.papers.metrics.metric import Row, RowMetric

MIDPOINT = 0.0
"""Scores above this mean relevant: labels are -1 and 1 (CRAG, Sec. 4.2), and a chat model's yes and
no are 1 and -1."""


def relevance(example: Example) -> list[bool] | None:
    """Return for each document whether it is from a right page; None if unknown.

    The document's own label, else whether its title is a gold title (CRAG, Sec. 4.2).
    """
    labels = [document.metadata.get("relevant") for document in example.documents]
    if labels and all(isinstance(label, bool) for label in labels):
        return [bool(label) for label in labels]
    if not example.gold_titles or not labels:
        return None
    return [document.metadata.get("title") in example.gold_titles for document in example.documents]


def _judged(example: Example, row: Row) -> tuple[list[bool], list[bool]] | None:
    """Return which documents are relevant and which were judged so."""
    right, scores = relevance(example), row["scores"]
    if right is None or len(scores) != len(right):
        return None
    return right, _relevant(scores)


def _relevant(scores: Sequence[float]) -> list[bool]:
    return [score > MIDPOINT for score in scores]


def _evaluator(example: Example, row: Row) -> float | None:
    if (found := _judged(example, row)) is None:
        return None
    right, judged = found
    return float(any(right) == any(judged))


def _documents(example: Example, row: Row) -> float | None:
    if (found := _judged(example, row)) is None:
        return None
    right, judged = found
    return sum(map(bool.__eq__, right, judged)) / len(right)


def _action(example: Example, row: Row) -> float | None:
    wanted = example.extra.get("action")
    return float(row["action"] == wanted) if wanted and row["action"] else None


EVALUATOR_ACCURACY = RowMetric(name="evaluator_accuracy", compute=_evaluator)
"""Whether the set is correctly judged to have a relevant document or none. The paper does not say
how its scores become verdicts; here any score above the midpoint is a yes."""
DOCUMENT_ACCURACY = RowMetric(name="document_accuracy", compute=_documents)
"""The share of documents judged correctly, one by one."""
ACTION_ACCURACY = RowMetric(name="action_accuracy", compute=_action)
"""Whether the action is the correct one for the documents, if the file gives it."""

METRICS = (EVALUATOR_ACCURACY, DOCUMENT_ACCURACY, ACTION_ACCURACY)

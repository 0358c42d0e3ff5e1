"""What rows say without looking at answers: knowledge, judgements of the evaluator, and costs."""

from functools import partial

from crag.papers.bench.examples import Example
from crag.papers.metrics.metric import ALL, LABELLED, Metric, Row, has_answer

MIDPOINT = 0.0
"""Scores above this mean relevant: labels are -1 and 1 (CRAG, Sec. 4.2), and a chat model's yes and
no are 1 and -1."""
_SEARCHABLE = ALL - LABELLED - {"biography"}
"""Searching a text for a gold answer makes no sense for verdicts and option letters."""


def relevance(example: Example) -> list[bool] | None:
    """Return for each document whether it is from a right page; None if unknown.

    The document's own label, else whether its title is a gold title (CRAG, Sec. 4.2). If documents
    were removed, pass the example without them.
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
    return right, [score > MIDPOINT for score in scores]


def _evaluator(example: Example, row: Row) -> float | None:
    found = _judged(example, row)
    return float(any(found[0]) == any(found[1])) if found else None


def _documents(example: Example, row: Row) -> float | None:
    found = _judged(example, row)
    return sum(map(bool.__eq__, *found)) / len(found[0]) if found else None


def _number(value: bool | None) -> float | None:
    return None if value is None else float(value)


def _found(_: Example, row: Row) -> float | None:
    without = row["retrieved_holds_answer"] is False
    return _number(row["knowledge_holds_answer"]) if without else None


def _used(name: str, _: Example, row: Row) -> float:
    return float(row["usage"].get(name, 0))


METRICS = (
    # Whether the set is rightly judged to have a relevant document or none. The paper does not say
    # how its scores become verdicts; here any score above the midpoint is a yes.
    Metric(name="evaluator_accuracy", compute=_evaluator),
    # The share of documents judged rightly, one by one.
    Metric(name="document_accuracy", compute=_documents),
    # The retrieved documents contain a gold answer; the knowledge for the generator does.
    Metric(
        name="retrieved_recall",
        compute=lambda _, row: _number(row["retrieved_holds_answer"]),
        tasks=_SEARCHABLE,
    ),
    Metric(
        name="knowledge_recall",
        compute=lambda _, row: _number(row["knowledge_holds_answer"]),
        tasks=_SEARCHABLE,
    ),
    # Of the questions whose documents have no answer: the knowledge has one.
    Metric(name="answer_found", compute=_found, tasks=_SEARCHABLE),
    Metric(
        name="knowledge_words", compute=lambda _, row: float(row["knowledge_words"]), unit="words"
    ),
    *(
        Metric(name=name, compute=partial(_used, name), unit="count", of_failed=True)
        for name in ("llm_calls", "evaluated_texts", "searches")
    ),
    # As the model's replies count them; 0 where they do not.
    *(
        Metric(name=name, compute=partial(_used, name), unit="tokens", of_failed=True)
        for name in ("input_tokens", "output_tokens")
    ),
    # Wall time of the question, including the wait for questions that run at the same time.
    Metric(
        name="seconds", compute=lambda _, row: float(row["seconds"]), unit="seconds", of_failed=True
    ),
    # The share of questions for which the model decided to retrieve (Self-RAG, Fig. 3c).
    Metric(name="retrieval_frequency", compute=lambda _, row: _number(row["retrieved"])),
    # The share of questions without an answer, because no knowledge passed.
    Metric(name="abstained", compute=lambda _, row: float(not has_answer(row))),
)

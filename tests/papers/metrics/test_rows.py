"""What rows say of knowledge, of the evaluator and of costs."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.papers.metrics import METRICS
from crag.papers.metrics.rows import relevance

Make = Callable[..., Any]
TITLED = tuple(Document("text", metadata={"title": title}) for title in ("Bob", "Ada", "Cy"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (True, True, (1.0, 1.0, None)),
        (True, False, (1.0, 0.0, None)),
        (False, True, (0.0, 1.0, 1.0)),
        (False, False, (0.0, 0.0, 0.0)),
        (None, None, (None, None, None)),
    ],
)
def test_recall_before_and_after(
    example: Make, row: Make, before: bool | None, after: bool | None, expected: tuple[Any, ...]
) -> None:
    measured = row(retrieved_holds_answer=before, knowledge_holds_answer=after)
    metrics = [METRICS[name] for name in ("retrieved_recall", "knowledge_recall", "answer_found")]
    assert tuple(metric.score(example(), measured) for metric in metrics) == expected
    labelled = example("arc")
    assert all(metric.score(labelled, measured) is None for metric in metrics)


def test_words(example: Make, row: Make) -> None:
    measured = row(knowledge_words=30, documents_words=120)
    assert METRICS["knowledge_words"].score(example(), measured) == 30.0
    assert METRICS["words_kept"].score(example(), measured) == 0.25
    assert METRICS["words_kept"].score(example(), row(knowledge_words=30)) is None


@pytest.mark.parametrize(
    ("scores", "of_set", "of_documents"),
    [
        ([-0.9, 0.8, -0.2], 1.0, 1.0),
        ([0.9, -0.8, -0.2], 1.0, 1 / 3),
        ([-0.9, -0.8, 0.0], 0.0, 2 / 3),
        ([0.1, 0.1, 0.1], 1.0, 1 / 3),
    ],
)
def test_against_gold_titles(
    example: Make, row: Make, scores: list[float], of_set: float, of_documents: float
) -> None:
    given = example(documents=TITLED, gold_titles=("Ada",))
    assert METRICS["evaluator_accuracy"].score(given, row(scores=scores)) == of_set
    assert METRICS["document_accuracy"].score(given, row(scores=scores)) == pytest.approx(
        of_documents
    )


def test_a_set_without_a_right_page_is_judged_right_by_no_yes(example: Make, row: Make) -> None:
    given = example(documents=TITLED, gold_titles=("Di",))
    assert METRICS["evaluator_accuracy"].score(given, row(scores=[-1.0, -0.2, -0.3])) == 1.0
    assert METRICS["evaluator_accuracy"].score(given, row(scores=[-1.0, 0.2, -0.3])) == 0.0


def test_labels_of_documents_come_before_titles(example: Make) -> None:
    labelled = tuple(
        Document("text", metadata={"title": "Ada", "relevant": right}) for right in (True, False)
    )
    assert relevance(example(documents=labelled, gold_titles=("Bob",))) == [True, False]
    assert relevance(example(documents=TITLED)) is None
    assert relevance(example(gold_titles=("Ada",))) is None


def test_actions(example: Make, row: Make) -> None:
    given = example(extra={"action": "ambiguous"})
    assert METRICS["action_accuracy"].score(given, row(action="ambiguous")) == 1.0
    assert METRICS["action_accuracy"].score(given, row(action="correct")) == 0.0
    assert METRICS["action_accuracy"].score(given, row(action="")) is None
    assert METRICS["action_accuracy"].score(example(), row(action="correct")) is None


def test_what_was_spent(example: Make, row: Make) -> None:
    usage = {"llm_calls": 2, "evaluated_texts": 13, "searches": 1, "input_tokens": 700}
    measured = row(usage=usage, seconds=1.5)
    names = ["llm_calls", "evaluated_texts", "searches", "input_tokens", "seconds"]
    found = [METRICS[name].score(example(), measured) for name in names]
    assert found == [2.0, 13.0, 1.0, 700.0, 1.5]


def test_failed_rows_cost_too(example: Make, row: Make) -> None:
    pairs = [
        (example(), row(usage={"llm_calls": 2})),
        (example(), row(usage={"llm_calls": 4}, status="failed")),
        (example(), row(usage={"llm_calls": 0}, status="abstained")),
    ]
    assert METRICS["llm_calls"].summarise(pairs) == 2.0
    assert METRICS["abstained"].summarise(pairs) == 0.5

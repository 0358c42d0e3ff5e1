from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.papers.metrics.judging import (
    ACTION_ACCURACY,
    DOCUMENT_ACCURACY,
    EVALUATOR_ACCURACY,
    relevance,
)

Make = Callable[..., Any]
TITLED = tuple(Document("text", metadata={"title": title}) for title in ("Bob", "Ada", "Cy"))


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
    assert EVALUATOR_ACCURACY.score(given, row(scores=scores)) == of_set
    assert DOCUMENT_ACCURACY.score(given, row(scores=scores)) == pytest.approx(of_documents)


def test_a_set_without_a_right_page_is_judged_right_by_no_yes(example: Make, row: Make) -> None:
    given = example(documents=TITLED, gold_titles=("Di",))
    assert EVALUATOR_ACCURACY.score(given, row(scores=[-1.0, -0.2, -0.3])) == 1.0
    assert EVALUATOR_ACCURACY.score(given, row(scores=[-1.0, 0.2, -0.3])) == 0.0


def test_labels_of_documents_come_before_titles(example: Make) -> None:
    labelled = tuple(
        Document("text", metadata={"title": "Ada", "relevant": right}) for right in (True, False)
    )
    assert relevance(example(documents=labelled, gold_titles=("Bob",))) == [True, False]
    assert relevance(example(documents=TITLED)) is None
    assert relevance(example(gold_titles=("Ada",))) is None


def test_actions(example: Make, row: Make) -> None:
    given = example(extra={"action": "ambiguous"})
    assert ACTION_ACCURACY.score(given, row(action="ambiguous")) == 1.0
    assert ACTION_ACCURACY.score(given, row(action="correct")) == 0.0
    assert ACTION_ACCURACY.score(given, row(action="")) is None
    assert ACTION_ACCURACY.score(example(), row(action="correct")) is None

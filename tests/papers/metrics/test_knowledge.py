from collections.abc import Callable
from typing import Any

import pytest

from crag.papers.metrics.knowledge import (
    ANSWER_FOUND,
    ANSWER_KEPT,
    KNOWLEDGE_RECALL,
    KNOWLEDGE_WORDS,
    RETRIEVED_RECALL,
    WORDS_KEPT,
)

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (True, True, (1.0, 1.0, 1.0, None)),
        (True, False, (1.0, 0.0, 0.0, None)),
        (False, True, (0.0, 1.0, None, 1.0)),
        (False, False, (0.0, 0.0, None, 0.0)),
        (None, None, (None, None, None, None)),
    ],
)
def test_recall_before_and_after(
    example: Make, row: Make, before: bool | None, after: bool | None, expected: tuple[Any, ...]
) -> None:
    measured = row(retrieved_holds_answer=before, knowledge_holds_answer=after)
    metrics = (RETRIEVED_RECALL, KNOWLEDGE_RECALL, ANSWER_KEPT, ANSWER_FOUND)
    assert tuple(metric.score(example(), measured) for metric in metrics) == expected
    labelled = example("arc")
    assert all(metric.score(labelled, measured) is None for metric in metrics)


def test_words(example: Make, row: Make) -> None:
    measured = row(knowledge_words=30, documents_words=120)
    assert KNOWLEDGE_WORDS.score(example(), measured) == 30.0
    assert WORDS_KEPT.score(example(), measured) == 0.25
    assert WORDS_KEPT.score(example(), row(knowledge_words=30)) is None

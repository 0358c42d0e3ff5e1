"""What words alone tell."""

import numpy as np
import pytest
from numpy.typing import NDArray

from crag.models.lexical import FEATURES, features
from crag.papers.reader.reader import rarity_of

RARITY = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], dtype=np.float32)


def ids(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def named(row: list[float]) -> dict[str, float]:
    return dict(zip(FEATURES, row, strict=True))


def test_a_small_example_by_hand() -> None:
    # The question weighs 2 + 3 + 5 = 10, the title 3 + 7 = 10.
    found = named(features(ids(2, 3, 5), ids(3, 7), ids(5, 1, 2, 3, 9), RARITY))
    assert found == pytest.approx(
        {
            "question_in_text": 1.0,
            "question_in_text_or_title": 1.0,
            "title_in_question": 0.3,
            "question_in_title": 0.3,
            "run_in_text": 0.5,  # 2 3 follow each other in both.
            "run_in_title": 0.3,
            "question_in_window": 1.0,
            "length": np.log(6),
            "title_stands_in_question": 0.0,
        }
    )


@pytest.mark.parametrize(
    ("title", "stands"),
    [([3, 5], 1.0), ([2], 1.0), ([5, 3], 0.0), ([2, 5], 0.0), ([3, 7], 0.0), ([], 0.0)],
)
def test_a_whole_title_in_the_question(title: list[int], stands: float) -> None:
    found = named(features(ids(2, 3, 5), ids(*title), ids(), RARITY))
    assert found["title_stands_in_question"] == stands


def test_rarity() -> None:
    rarity = rarity_of([[1, 1, 2], [1], []], 4)
    assert rarity == pytest.approx(np.log([4 / 1, 4 / 3, 4 / 2, 4 / 1]))
    assert rarity.dtype == np.float32

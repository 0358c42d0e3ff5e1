"""What words alone tell."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crag.models.lexical import FEATURES, features
from crag.papers.reader.reader import rarity_of

LENGTH = FEATURES.index("length")
TOKENS = 12
RARITY = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], dtype=np.float32)
tokens = st.lists(st.integers(0, TOKENS - 1), max_size=70).map(lambda ids: np.array(ids, np.int64))


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


@given(tokens, tokens, tokens, st.integers(0, 9))
@settings(deadline=None)
def test_shares_lie_between_0_and_1(
    question: NDArray[np.int64], title: NDArray[np.int64], text: NDArray[np.int64], seed: int
) -> None:
    rarity = np.random.default_rng(seed).gamma(1, 2, TOKENS).astype(np.float32)
    row = features(question, title, text, rarity)
    shares = [value for place, value in enumerate(row) if place != LENGTH]
    assert all(0 <= share <= 1 + 1e-6 for share in shares)
    assert row[LENGTH] == np.log1p(len(text))
    found = named(row)
    assert found["run_in_text"] <= found["question_in_text"] + 1e-6
    assert found["question_in_window"] <= found["question_in_text"] + 1e-6
    assert found["question_in_text"] <= found["question_in_text_or_title"] + 1e-6


def test_rarity() -> None:
    rarity = rarity_of([[1, 1, 2], [1], []], 4)
    assert rarity == pytest.approx(np.log([4 / 1, 4 / 3, 4 / 2, 4 / 1]))
    assert rarity.dtype == np.float32

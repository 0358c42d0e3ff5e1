"""What words alone tell."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from crag.errors import EvaluatorError
from crag.models.lexical import FEATURES, LEXICAL, Blend, bare_title, features
from crag.models.minilm import packaged_model
from crag.papers.training.artefacts import rarity_of, write_blend

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


def test_what_a_title_adds() -> None:
    found = named(features(ids(2, 3, 5), ids(5), ids(2, 9), RARITY))
    assert found["question_in_text"] == pytest.approx(0.2)
    assert found["question_in_text_or_title"] == pytest.approx(0.7)
    assert found["title_in_question"] == 1.0


@pytest.mark.parametrize(
    ("title", "stands"),
    [([3, 5], 1.0), ([2], 1.0), ([5, 3], 0.0), ([2, 5], 0.0), ([3, 7], 0.0), ([], 0.0)],
)
def test_a_whole_title_in_the_question(title: list[int], stands: float) -> None:
    found = named(features(ids(2, 3, 5), ids(*title), ids(), RARITY))
    assert found["title_stands_in_question"] == stands


def test_a_window_is_thirty_tokens() -> None:
    apart = ids(2, *[0] * 40, 3)
    assert named(features(ids(2, 3), ids(), apart, RARITY))["question_in_window"] == 0.6
    near = ids(*[0] * 20, 2, *[0] * 20, 3)
    assert named(features(ids(2, 3), ids(), near, RARITY))["question_in_window"] == 1.0


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


@pytest.mark.parametrize(
    ("question", "text"), [(ids(), ids(1, 2)), (ids(1, 2), ids()), (ids(), ids()), (ids(0), ids(0))]
)
def test_nothing_to_compare(question: NDArray[np.int64], text: NDArray[np.int64]) -> None:
    row = features(question, ids(), text, RARITY)
    assert row[:LENGTH] + row[LENGTH + 1 :] == [0.0] * (len(FEATURES) - 1)
    assert row[LENGTH] == np.log1p(len(text))


def test_rarity() -> None:
    rarity = rarity_of([[1, 1, 2], [1], []], 4)
    assert rarity == pytest.approx(np.log([4 / 1, 4 / 3, 4 / 2, 4 / 1]))
    assert rarity.dtype == np.float32


@pytest.mark.parametrize(
    ("title", "bare"),
    [("Ada", "Ada"), ("Ada (film)", "Ada"), ("a // b", "a // b"), ("f(x)", "f(x)"), ("", "")],
)
def test_a_title_loses_its_part_in_brackets(title: str, bare: str) -> None:
    assert bare_title(title) == bare


def encoded(*pairs: tuple[str, str], padded: bool = False) -> list[Encoding]:
    tokenizer = Tokenizer.from_file(str(packaged_model() / "tokenizer.json"))
    tokenizer.no_padding()
    if padded:
        tokenizer.enable_padding()
    return list(tokenizer.encode_batch(list(pairs)))


def test_titles_are_told_from_texts_and_padding_counts_for_nothing() -> None:
    pair, longer = ("who was ada", "ada // he was"), ("who was ada", "they was " * 9)
    blend = Blend(np.ones(30522, np.float32), np.zeros(len(FEATURES) + 1), 0.0)
    padded, _ = blend.features(encoded(pair, longer, padded=True), ["ada", ""])
    assert padded == pytest.approx(blend.features(encoded(pair), ["ada"])[0])
    found = named(padded.tolist())
    assert found["question_in_title"] == pytest.approx(1 / 3)
    assert found["title_in_question"] == 1.0
    assert found["question_in_text"] == pytest.approx(1 / 3)
    assert found["length"] == np.log1p(4)  # The two strokes, "he" and "was".


def test_no_pairs_have_no_features() -> None:
    blend = Blend(RARITY, np.zeros(len(FEATURES) + 1), 0.5)
    assert blend.features([], []).shape == (0, len(FEATURES))
    assert blend.logits(np.zeros(0), np.zeros((0, len(FEATURES)))).shape == (0,)


def test_a_blend_is_a_logistic_regression() -> None:
    blend = Blend(RARITY, np.arange(1 + len(FEATURES), dtype=np.float64), -1.0)
    assert blend.logits(np.array([5.0]), np.ones((1, len(FEATURES)))) == pytest.approx(
        [sum(range(1 + len(FEATURES))) - 1.0]
    )


def test_a_blend_comes_back(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    blend = Blend(
        draw.gamma(1, 2, 99).astype(np.float32), draw.normal(size=1 + len(FEATURES)), 0.25
    )
    write_blend(blend, tmp_path / LEXICAL)
    read = Blend.of(tmp_path)
    assert read is not None
    assert np.array_equal(read.weights, blend.weights)
    assert read.intercept == 0.25
    assert read.rarity == pytest.approx(blend.rarity, rel=1e-3)
    assert read.rarity.dtype == np.float32


def test_a_blend_of_other_features_is_refused(tmp_path: Path) -> None:
    write_blend(Blend(RARITY, np.zeros(3), 0.0), tmp_path / LEXICAL)
    with pytest.raises(EvaluatorError, match="train the evaluator again"):
        Blend.of(tmp_path)


def test_a_title_without_weight_stands_nowhere() -> None:
    last = FEATURES.index("title_stands_in_question")
    assert features(ids(2, 3), ids(0), ids(9), RARITY)[last] == 0.0

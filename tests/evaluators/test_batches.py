"""Batches of like length, and the beginning of long texts."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crag.evaluators.batches import first_tokens, scored_in_batches
from crag.evaluators.checkpoint import load_tokenizer
from crag.torch_models import length_sorted_batches

TINY = Path(__file__).parents[1] / "fixtures" / "tiny_t5"
ANY = st.text(max_size=60)
WORDS = st.lists(
    st.sampled_from(["a", "é", "е́", "Москва", "東京", "👩‍👧", "x.", "\u0600", "\u0301b", "ﬁ"])
)
LONG = st.lists(ANY | WORDS.map(" ".join), max_size=30).map(" ".join)


@given(st.lists(st.integers(0, 20)), st.integers(1, 7))
def test_each_index_once_longest_first_and_stable(lengths: list[int], size: int) -> None:
    batches = length_sorted_batches(lengths, size)
    order = [index for batch in batches for index in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [len(batch) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    keys = [(-lengths[index], index) for index in order]
    assert keys == sorted(keys)


@given(st.lists(ANY), st.integers(1, 7))
def test_scores_come_back_in_order(texts: list[str], size: int) -> None:
    seen: list[int] = []

    def score(batch: list[str]) -> list[float]:
        seen.append(len(batch))
        return [float(len(text)) for text in batch]

    assert scored_in_batches(texts, size, score) == [len(text) for text in texts]
    assert max(seen, default=0) <= size


def test_a_scorer_that_loses_a_text_is_found_out() -> None:
    with pytest.raises(ValueError, match="shorter"):
        scored_in_batches(["a", "b"], 2, lambda _: [0.0])


def words_as_numbers(text: str) -> list[int]:
    return [len(word) for word in re.findall(r"\w+|[^\w\s]", text)]


@pytest.fixture(scope="module")
def pieces() -> Callable[[str], list[int]]:
    tokenizer = load_tokenizer(TINY)
    return lambda text: tokenizer(text, add_special_tokens=False, verbose=False).input_ids


@settings(deadline=None)
@given(LONG, st.integers(0, 12))
def test_the_beginning_is_that_of_the_whole(text: str, most: int) -> None:
    assert first_tokens(text, most, words_as_numbers) == words_as_numbers(text)[:most]


@settings(deadline=None)
@given(LONG, st.integers(0, 12))
@example("a </s> b <extra_id_0> c <pad>", 3)
@example("\u0600 a \u0301b e\u0301 \u200d c\u0600 d", 1)
def test_so_it_is_with_the_pieces_of_t5(
    pieces: Callable[[str], list[int]], text: str, most: int
) -> None:
    assert first_tokens(text, most, pieces) == pieces(text)[:most]


@pytest.mark.parametrize("word", ["word ", "слово ", "語", "😀", "😀 ", " "])
def test_long_texts_in_every_script(pieces: Callable[[str], list[int]], word: str) -> None:
    text = word * 20_000
    assert first_tokens(text, 511, pieces) == pieces(text)[:511]


def test_a_long_text_is_not_encoded_whole() -> None:
    seen: list[int] = []

    def encode(text: str) -> list[int]:
        seen.append(len(text))
        return words_as_numbers(text)

    assert len(first_tokens("word " * 1_000_000, 512, encode)) == 512
    assert seen == [pytest.approx(8 * 512, abs=10)]


def test_half_a_surrogate_pair_is_a_question_mark() -> None:
    given_to: list[str] = []
    first_tokens("a\ud800b", 5, lambda text: given_to.append(text) or [])  # type: ignore[func-returns-value]
    assert given_to == ["a?b"]

"""The order of a run, and pairs as a model reads them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.recipe import Recipe
from crag.papers.reader.examples import Examples, ScheduledPair, in_order, visits
from tests.trained import TINY_T5, some_pairs

PAIRS = some_pairs(60)
sizes = st.integers(1, 60)


def recipe(**values: object) -> Recipe:
    return Recipe.model_validate(values)


@given(sizes, st.integers(1, 20), st.integers(1, 4), st.integers(0, 5))
def test_every_pair_once_in_each_epoch(count: int, size: int, epochs: int, seed: int) -> None:
    used = recipe(batch_size=size, epochs=epochs, seed=seed)
    order = visits(PAIRS[:count], used)
    assert Counter(visit.pair for visit in order) == dict.fromkeys(range(count), epochs)
    assert order == visits(PAIRS[:count], used)
    whole = count - count % size
    for epoch in range(epochs):  # What is left over comes at the end.
        seen = [visit.pair for visit in order[epoch * whole : (epoch + 1) * whole]]
        assert len(set(seen)) == whole


def test_only_titles_that_the_text_names_are_dropped() -> None:
    order = visits(PAIRS, recipe(drop_titles=0.9, epochs=5))
    dropped = {visit.pair for visit in order if not visit.titled}
    assert dropped
    for index in dropped:
        name = PAIRS[index].title.partition(" (")[0].lower()
        assert name in PAIRS[index].text.lower()


@pytest.mark.parametrize(
    ("loss", "labels"), [("squared", [1.0, 0.0, -1.0]), ("cross_entropy", [1.0, 0.5, 0.0])]
)
def test_labels_as_the_loss_expects(loss: str, labels: list[float]) -> None:
    from transformers import AutoTokenizer

    pairs = [Pair("q", "", "text", label) for label in (1.0, 0.5, 0.0)]
    tokenizer = AutoTokenizer.from_pretrained(TINY_T5)
    examples = Examples(pairs, in_order(pairs), recipe(loss=loss), tokenizer, paired=False)
    assert [examples[index]["labels"] for index in range(len(examples))] == labels


def test_a_t5_reads_one_text() -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(TINY_T5)
    pairs = [Pair("Who was she?", "Ada", "Ada did.", 1.0)]
    order = [ScheduledPair(0, titled=True), ScheduledPair(0, titled=False)]
    titled, bare = Examples(pairs, order, recipe(max_length=64), tokenizer, paired=False)
    assert titled["input_ids"] == tokenizer("Who was she? [SEP] Ada // Ada did.")["input_ids"]
    assert bare["input_ids"] == tokenizer("Who was she? [SEP] Ada did.")["input_ids"]
    (cut,) = Examples(pairs, order[:1], recipe(max_length=8), tokenizer, paired=False)
    assert len(cut["input_ids"]) == 8

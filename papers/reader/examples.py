"""Training examples from pairs, in an order that the seed fixes for the whole run."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from crag.correction.scoring import joined, with_title
from crag.papers.evaluator.batches import like_length_order
from crag.papers.evaluator.pairs import Pair
from crag.papers.evaluator.recipe import Recipe

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class ScheduledPair(NamedTuple):
    """One use of a pair in training."""

    pair: int
    titled: bool


def visits(pairs: Sequence[Pair], recipe: Recipe) -> list[ScheduledPair]:
    """Return all visits of a run, in batches of similar length; the same for the same seed.

    The order of all epochs is fixed in advance, so an interrupted run continues with exactly the
    batches of an uninterrupted one. Every pair is visited once per epoch; pairs left over when an
    epoch is cut into batches come at the end of the run.
    """
    order: list[ScheduledPair] = []
    left_over: list[ScheduledPair] = []
    lengths = [len(pair.text) for pair in pairs]
    for epoch in range(recipe.epochs):
        draw = random.Random(f"{recipe.seed}-{epoch}")  # noqa: S311 - an order, no secret
        seen = [ScheduledPair(i, _keeps_title(pair, recipe, draw)) for i, pair in enumerate(pairs)]
        batched, rest = like_length_order(lengths, recipe.batch_size, draw)
        order += [seen[index] for index in batched]
        left_over += [seen[index] for index in rest]
    return order + left_over


def _keeps_title(pair: Pair, recipe: Recipe, draw: random.Random) -> bool:
    """Draw whether a title is kept; titles that the text does not repeat stay, unless all go."""
    drops = draw.random() < recipe.drop_titles
    name = pair.title.partition(" (")[0].lower()
    return not drops or (recipe.drop_titles < 1 and name not in pair.text.lower())


@dataclass(frozen=True)
class Examples:
    """A map-style data set of tokenised pairs with the labels that the loss expects."""

    pairs: Sequence[Pair]
    order: Sequence[ScheduledPair]
    recipe: Recipe
    tokenizer: "PreTrainedTokenizerBase"
    paired: bool
    """Question and text as two segments (encoders), or as one text with ``[SEP]`` (T5)."""

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: int) -> dict[str, Any]:
        visit = self.order[index]
        pair = self.pairs[visit.pair]
        text = with_title(pair.title, pair.text) if visit.titled else pair.text
        encoded = dict(self._encode(pair.question, text))
        squared = self.recipe.loss == "squared"
        encoded["labels"] = (pair.label - 0.5) * 2 if squared else pair.label
        return encoded

    def _encode(self, question: str, text: str) -> Any:
        length = self.recipe.max_length
        if self.paired:
            # A question that fills the input is truncated too; then the text is empty.
            return self.tokenizer(question, text, truncation="longest_first", max_length=length)
        return self.tokenizer(joined(question, text), truncation=True, max_length=length)


def in_order(pairs: Sequence[Pair]) -> list[ScheduledPair]:
    """Return one visit of each pair with its title, to evaluate a development set."""
    return [ScheduledPair(index, titled=True) for index in range(len(pairs))]

"""The calibrated cosine."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from crag.correction.scoring import split_title
from crag.evaluators import CosineEvaluator
from crag.parts import Passage

FAKE = CosineEvaluator.fitted(DeterministicFakeEmbedding(size=16))


def test_the_same_text_scores_highest_wherever_it_stands() -> None:
    alone, within, titled, other = FAKE.score(
        "A question is here.",
        [
            "A question is here.",
            "Something else. A question is here.",
            "T // A question is here.",
            "Another text.",
        ],
    )
    assert alone == pytest.approx(within, abs=1e-5) == pytest.approx(titled, abs=1e-5)
    assert alone > other


def test_only_what_is_given_as_a_title_is_one() -> None:
    asked = "total = price * count // round down"
    (untitled,) = FAKE.cosines("round down", [Passage("", asked)])
    (joined,) = FAKE.cosines("round down", [split_title(asked)])
    assert joined == pytest.approx(1, abs=1e-5)  # The comment alone passes for the text.
    assert untitled is not None
    assert untitled < 0.9

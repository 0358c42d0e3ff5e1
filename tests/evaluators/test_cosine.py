"""The calibrated cosine."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from crag.correction.scoring import split_title
from crag.errors import EvaluatorError
from crag.evaluators import CosineEvaluator, load_evaluator
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


def test_the_default_tells_what_belongs_to_a_question_from_what_does_not() -> None:
    texts = ["Paris // Paris is the capital of France.", "Yeast // Yeast makes bread dough rise."]
    evaluator = load_evaluator("cross-encoder")
    near, far = evaluator.score("What is the capital of France?", texts)
    assert near >= evaluator.thresholds["upper"]
    assert far < evaluator.thresholds["lower"]


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(
        EvaluatorError, match=r"'t6'.*there are: default, reader, cross-encoder, cosine"
    ):
        load_evaluator("t6")

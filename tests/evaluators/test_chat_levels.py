"""A chat model that grades high, medium or low, as on the poster about CRAG."""

import math

import pytest

from crag.errors import EvaluatorError
from crag.evaluators import load_evaluator
from crag.evaluators.chat import ChatEvaluator, level
from crag.testing import FakeChatModel


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("high", "high"),
        ("Medium.", "medium"),
        ("**low**", "low"),
        ("High, since it is not low.", "high"),
        ("I would say medium", "medium"),
        ("<think>low or high?</think>high", "high"),
    ],
)
def test_a_level_is_read_from_a_reply(reply: str, said: str) -> None:
    assert level(reply) == said


@pytest.mark.parametrize("reply", ["", "yes", "Neither high nor low.", "highly doubtful"])
def test_what_is_no_level_is_refused(reply: str) -> None:
    with pytest.raises(EvaluatorError, match="neither high nor medium nor low"):
        level(reply)


def test_levels_are_scores_whose_thresholds_give_the_grades_back() -> None:
    model = FakeChatModel(replies=["high", "medium", "low", "perhaps"])
    evaluator = load_evaluator("chat-levels", model=model)
    assert isinstance(evaluator, ChatEvaluator)
    scores = [evaluator.score("Q?", [text])[0] for text in ("a", "b", "c")]
    assert scores == [1.0, 0.0, -1.0]
    limits = evaluator.thresholds
    grades = [(score >= limits["upper"], score >= limits["lower"]) for score in scores]
    assert grades == [(True, True), (False, True), (False, False)]
    model = FakeChatModel(replies=["perhaps", "high"])
    assert sum(map(math.isnan, ChatEvaluator(model, style="levels").score("Q?", ["a", "b"]))) == 1

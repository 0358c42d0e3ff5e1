"""An evaluator that breaks its contract is found out."""

import math
from typing import Any

import pytest

from crag.correction.provenance import unscored
from crag.correction.scoring import filter_strips, score_texts
from crag.settings import Settings
from crag.state import Source
from crag.testing import FakeEvaluator

SOURCE = Source(id="1", title="Title", url="", position="")


class Wrong(FakeEvaluator):
    """Returns whatever it was told to."""

    def __init__(self, scores: Any) -> None:
        super().__init__()
        self._wrong = scores

    def score(self, question: str, texts: Any) -> list[float]:
        del question, texts
        return self._wrong  # type: ignore[no-any-return]


def test_empty_texts_score_lowest_without_the_evaluator() -> None:
    evaluator = FakeEvaluator(0.7)
    assert score_texts(evaluator, "q", ["", "text", " \n"], node="grade").scores == [-1, 0.7, -1]
    assert evaluator.calls == [("q", ["text"])]
    assert score_texts(evaluator, "q", [], node="grade").scores == []
    assert len(evaluator.calls) == 1


@pytest.mark.parametrize("scores", [[], [0.9], [0.9] * 3, None, ["high", "low"]])
def test_a_wrong_reply_scores_everything_lowest(scores: Any) -> None:
    scored = score_texts(Wrong(scores), "q", ["a b", "c d"], node="grade")
    assert scored.scores == [-1.0, -1.0]
    assert [entry["kind"] for entry in scored.events] == ["evaluator_failed"]


def test_nan_costs_only_its_own_text() -> None:
    scored = score_texts(Wrong([math.nan, 0.4, math.inf]), "q", ["a", "b", "c"], node="grade")
    assert scored.scores == [-1.0, 0.4, -1.0]
    assert "2 of 3 scores" in scored.events[0]["detail"]


def test_an_evaluator_that_raises_is_an_event() -> None:
    scored = score_texts(FakeEvaluator(error=RuntimeError("out of memory")), "q", ["a"], node="x")
    assert scored.scores == [-1.0]
    assert scored.events[0]["detail"] == "RuntimeError: out of memory"


def test_short_strips_score_lowest_and_titles_take_part() -> None:
    evaluator = FakeEvaluator(0.7)
    strips = [unscored("Too short here", SOURCE), unscored("This one is long enough", SOURCE)]
    judged = filter_strips(evaluator, "q", strips, Settings(), node="refine").strips
    assert [strip["score"] for strip in judged] == [-1.0, 0.7]
    assert evaluator.calls[0][1] == ["Title // This one is long enough"]
    filter_strips(evaluator, "q", strips, Settings(titles="none"), node="refine")
    assert evaluator.calls[1][1] == ["This one is long enough"]

"""One call for all passages; a failure is an event."""

import math
from typing import Any

import pytest

from crag.correction.provenance import unscored
from crag.papers.settings import PaperSettings
from crag.parts import Passage
from crag.runtime.evaluator_calls import filter_strips, judge_passages
from crag.settings import Settings
from crag.state import Source
from crag.testing import FakeEvaluator, FakeReadingEvaluator

SOURCE = Source(id="1", title="Title", url="", position="")
UNTITLED = Source(id="2", title="", url="", position="")


def untitled(*texts: str) -> list[Passage]:
    return [Passage("", text) for text in texts]


class Wrong(FakeReadingEvaluator):
    """Returns whatever it was told to."""

    def __init__(self, replies: Any) -> None:
        super().__init__()
        self.read = self.score = lambda *_: replies  # type: ignore[method-assign]


def test_empty_texts_score_lowest_without_the_evaluator() -> None:
    evaluator = FakeEvaluator(0.7)
    scored = judge_passages(evaluator, "q", untitled("", "text", " \n"), node="grade")
    assert scored.scores == [-1, 0.7, -1]
    assert scored.usage == {"evaluator_calls": 1, "evaluated_texts": 1}
    assert evaluator.calls == [("q", ["text"])]
    assert judge_passages(evaluator, "q", [], node="grade") == ([], [], [], {})
    reading = FakeReadingEvaluator()
    scores, (nothing,), events, usage = judge_passages(
        reading, "What?", [Passage("A", " ")], node="grade"
    )
    assert (scores, nothing["score"]) == ([-1.0], -1.0)
    assert (events, usage, reading.read_passages) == ([], {}, [])


@pytest.mark.parametrize("replies", [[], [{"score": 0.9}] * 3, None, ["high", "low"]])
def test_a_wrong_reply_scores_everything_lowest(replies: Any) -> None:
    scored = judge_passages(Wrong(replies), "q", untitled("a b", "c d"), node="grade")
    assert scored.scores == [-1.0, -1.0]
    assert [entry["kind"] for entry in scored.events] == ["evaluator_failed"]


def test_nan_costs_only_its_own_text() -> None:
    evaluator = FakeEvaluator({"a": math.nan, "b": 0.4, "c": math.inf})
    scored = judge_passages(evaluator, "q", untitled("a", "b", "c"), node="grade")
    assert scored.scores == [-1.0, 0.4, -1.0]
    assert "2 of 3 scores" in scored.events[0]["detail"]


def test_an_evaluator_that_raises_is_an_event_and_leaves_no_reading() -> None:
    evaluator = FakeReadingEvaluator(error=RuntimeError("out of memory"))
    scored = judge_passages(evaluator, "q", untitled("a"), node="x")
    assert scored.scores == [-1.0]
    assert scored.events[0]["detail"] == "RuntimeError: out of memory"
    assert scored.readings == []


CODE = "total = price * count // 2  // round down"


@pytest.mark.parametrize("titles", ["every_strip", "passage", "none"])
def test_strokes_in_an_untitled_text_are_no_title_to_who_reads(titles: Any) -> None:
    evaluator = FakeReadingEvaluator()
    strips = [unscored(CODE, UNTITLED)]
    filter_strips(evaluator, "q", strips, PaperSettings(titles=titles), node="refine")
    assert evaluator.read_passages == [[Passage("", CODE)]]


@pytest.mark.parametrize(
    ("titles", "scored"),
    [("every_strip", "Title // This is a long strip"), ("none", "This is a long strip")],
)
def test_titles_take_part_in_scoring(titles: Any, scored: str) -> None:
    evaluator, strips = FakeEvaluator(), [unscored("This is a long strip", SOURCE)]
    filter_strips(evaluator, "q", strips, PaperSettings(titles=titles), node="refine")
    assert evaluator.calls == [("q", [scored])]


@pytest.mark.parametrize(
    ("lower", "upper", "settings", "kept"),
    [
        (-0.9, 0.5, Settings(), [True, False]),
        (30.0, 70.0, Settings(), [True, False]),
        (-4.0, 2.0, Settings(), [True, True]),
        (30.0, 70.0, Settings(strip_threshold=5), [True, True]),
    ],
)
def test_strips_are_cut_on_the_scale_of_the_evaluator(
    lower: float, upper: float, settings: Settings, kept: list[bool]
) -> None:
    texts = {"best": upper, "worse": 20.0 if lower > 0 else lower + 0.1}
    evaluator = FakeEvaluator(texts, lower=lower, upper=upper)
    strips = [unscored(f"This is the {name} of all texts", UNTITLED) for name in texts]
    judged = filter_strips(evaluator, "q", strips, settings, node="refine")[0]
    assert [strip["kept"] for strip in judged] == kept

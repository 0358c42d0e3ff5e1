"""Quotation instead of a model."""

from crag.generation import ExtractiveAnswerer
from crag.state import Source, Strip
from crag.testing import FakeEvaluator


def strip(text: str, title: str = "", score: float = 0.3) -> Strip:
    source = Source(id="1", title=title, url="", position="")
    return Strip(text=text, kind="document", source=source, score=score, kept=True, reason="")


STRIPS = [
    strip("Nothing of note is here. The answer is forty-two indeed.", "Guide"),
    strip("# A heading with the answer\n\nAnother answer stands right here. Short answer."),
]


def test_the_best_sentences_are_quoted_in_order_of_the_strips() -> None:
    evaluator = FakeEvaluator({"Another answer": 0.9, "answer": 0.6}, upper=0.5)
    quotations = ExtractiveAnswerer(evaluator).quote("What?", STRIPS)
    assert [(quoted.text, quoted.strip) for quoted in quotations] == [
        ("The answer is forty-two indeed.", 0),
        ("Another answer stands right here.", 1),
    ]
    assert len(evaluator.calls) == 1


def test_a_sentence_is_scored_with_the_title_of_its_source() -> None:
    evaluator = FakeEvaluator(0.9)
    said = [strip("He was born in the year 1912.", "Alan Turing")]
    assert len(ExtractiveAnswerer(evaluator).quote("When was he born?", said)) == 1
    assert evaluator.calls[0][1] == ["Alan Turing // He was born in the year 1912."]


def test_nothing_below_the_threshold_is_quoted() -> None:
    evaluator = FakeEvaluator({"answer": 0.6}, upper=0.7)
    assert ExtractiveAnswerer(evaluator).quote("What?", STRIPS) == []
    assert ExtractiveAnswerer(evaluator).quote("What?", []) == []


def test_a_sentence_is_quoted_once_and_no_more_than_three() -> None:
    twice = [strip("The answer is right here."), strip("The answer is right here.")]
    assert len(ExtractiveAnswerer(FakeEvaluator(0.9)).quote("What?", twice)) == 1
    many = [strip(f"Answer number {n} is here.") for n in range(9)]
    assert len(ExtractiveAnswerer(FakeEvaluator(0.9)).quote("What?", many)) == 3

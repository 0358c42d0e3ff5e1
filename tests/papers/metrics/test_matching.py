from collections.abc import Callable
from typing import Any

import pytest

from crag.papers.metrics.matching import (
    METRICS,
    chosen_option,
)

Make = Callable[..., Any]
MATCH, MATCH_NORMALISED, MATCH_ANSWERED = METRICS
CHOICES = (("A", "a ruler"), ("B", "a balance"), ("C", "a cup"), ("D", "a clock"))
NUMBERED = (("1", "a ruler"), ("2", "a balance"), ("3", "a cup"), ("4", "a clock"))


@pytest.mark.parametrize(
    ("gold", "prediction", "official", "normalised"),
    [
        ("true", "true", 1.0, 1.0),
        ("true", "True.", 0.0, 1.0),
        ("true", "SUPPORTS", 1.0, 1.0),
        ("false", "Refutes: it is not so", 0.0, 1.0),
        ("false", "untrue and false", 1.0, 1.0),
        ("true", "untrue and false", 1.0, 0.0),
        ("true", "false, though some call it true", 1.0, 0.0),
        ("false", "No idea", 0.0, 0.0),
    ],
)
def test_pubhealth(
    example: Make, row: Make, gold: str, prediction: str, official: float, normalised: float
) -> None:
    claim = example("pubhealth", answers=((gold,),))
    assert MATCH.score(claim, row(prediction)) == official
    assert MATCH_NORMALISED.score(claim, row(prediction)) == normalised


def test_the_official_script_reads_verdicts_in_every_task(example: Make, row: Make) -> None:
    asked = example("popqa", answers=(("poet",),))
    assert MATCH.score(asked, row("It SUPPORTS that she was a poet")) == 0.0
    assert MATCH.score(asked, row("It supports that she was a poet")) == 1.0


@pytest.mark.parametrize(
    ("prediction", "official", "normalised"),
    [
        ("B", 1.0, 1.0),
        ("(B) a balance", 1.0, 1.0),
        ("The answer is B.", 1.0, 1.0),
        ("Option C, not B", 1.0, 0.0),
        ("A", 0.0, 0.0),
        ("A Balance", 1.0, 1.0),
        ("a balance is what one needs", 0.0, 1.0),
        ("By no means", 1.0, 0.0),
        ("a ruler or a balance", 0.0, 0.0),
        ("2", 0.0, 1.0),
    ],
)
def test_arc_key(
    example: Make, row: Make, prediction: str, official: float, normalised: float
) -> None:
    question = example("arc", answers=(("B",),), choices=CHOICES)
    assert MATCH.score(question, row(prediction)) == official
    assert MATCH_NORMALISED.score(question, row(prediction)) == normalised


@pytest.mark.parametrize(
    ("prediction", "official", "mapped"), [("B", 0.0, 1.0), ("2", 1.0, 1.0), ("C", 0.0, 0.0)]
)
def test_numeric_keys_count_in_the_mapped_score(
    example: Make, row: Make, prediction: str, official: float, mapped: float
) -> None:
    question = example("arc", answers=(("2",),), choices=NUMBERED)
    assert MATCH.score(question, row(prediction)) == official
    assert MATCH_NORMALISED.score(question, row(prediction)) == mapped


@pytest.mark.parametrize(
    ("prediction", "place"),
    [
        ("E", None),
        ("D: a clock", 3),
        ("**C**", 2),
        ("The correct option is (a).", 0),
        ("answer: 3", 2),
        ("A planet", None),
        ("the clock", 3),
        ("It is a clock, I think", 3),
        ("", None),
    ],
)
def test_the_option_a_prediction_chooses(prediction: str, place: int | None) -> None:
    assert chosen_option(prediction, CHOICES) == place


def test_abstentions_are_wrong_and_failures_left_out(example: Make, row: Make) -> None:
    for metric in (MATCH, MATCH_NORMALISED):
        assert metric.score(example(), row("no poet found", status="abstained")) == 0.0
        assert metric.score(example(), row("poet", status="failed")) is None
        pairs = [
            (example(), row("poet")),
            (example(), row("?", status="abstained")),
            (example(), row("", status="failed")),
        ]
        assert metric.summarise(pairs) == 0.5


def test_the_match_of_what_was_answered_leaves_abstentions_out(example: Make, row: Make) -> None:
    right, wrong = row("a poet"), row("a cook")
    abstained = row("a poet", status="abstained")
    scores = [MATCH_ANSWERED.score(example(), one) for one in (right, wrong, abstained)]
    assert scores == [1.0, 0.0, None]
    pairs = [(example(), one) for one in (right, wrong, abstained)]
    assert MATCH_ANSWERED.summarise(pairs) == 0.5

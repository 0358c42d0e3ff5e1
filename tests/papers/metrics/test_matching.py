"""Answers against gold answers, by the papers' rule and by ours."""

from collections.abc import Callable
from typing import Any

import pytest

from crag.papers.bench.examples import TaskName
from crag.papers.metrics.matching import METRICS, chosen_option

Make = Callable[..., Any]
MATCH, MATCH_NORMALISED, MATCH_ANSWERED = METRICS
CHOICES = (("A", "a ruler"), ("B", "a balance"), ("C", "a cup"), ("D", "a clock"))
NUMBERED = (("1", "a ruler"), ("2", "a balance"), ("3", "a cup"), ("4", "a clock"))


@pytest.mark.parametrize(
    ("task", "gold", "prediction", "official", "normalised"),
    [
        ("popqa", "politician", "She was a politician.", 1.0, 1.0),
        ("popqa", "pol", "She was a politician.", 1.0, 0.0),
        ("popqa", "politician", "She was a Politician.", 0.0, 1.0),
        ("popqa", "poet.", "She was a poet", 0.0, 1.0),
        ("popqa", "poet", "It SUPPORTS that she was a poet", 0.0, 1.0),
        ("popqa", "poet", "It supports that she was a poet", 1.0, 1.0),
        ("pubhealth", "true", "true", 1.0, 1.0),
        ("pubhealth", "true", "True.", 0.0, 1.0),
        ("pubhealth", "true", "SUPPORTS", 1.0, 1.0),
        ("pubhealth", "false", "It REFUTES the claim", 1.0, 1.0),
        ("pubhealth", "false", "Refutes: it is not so", 0.0, 1.0),
        ("pubhealth", "true", "SUPPORTS or REFUTES", 1.0, 1.0),
        ("pubhealth", "true", "untrue and false", 1.0, 0.0),
        ("pubhealth", "false", "No idea", 0.0, 0.0),
        ("arc", "B", "B", 1.0, 1.0),
        ("arc", "B", "(B) a balance", 1.0, 1.0),
        ("arc", "B", "The answer is B.", 1.0, 1.0),
        ("arc", "B", "Option C, not B", 1.0, 0.0),
        ("arc", "B", "A Balance", 1.0, 1.0),
        ("arc", "B", "a balance is what one needs", 0.0, 1.0),
        ("arc", "B", "By no means", 1.0, 0.0),
        ("arc", "B", "a ruler or a balance", 0.0, 0.0),
        ("arc", "B", "2", 0.0, 1.0),
        ("arc", "2", "B", 0.0, 1.0),
        ("arc", "2", "2", 1.0, 1.0),
    ],
)
def test_the_official_match_and_ours(
    example: Make, row: Make, task: TaskName, gold: str, prediction: str,
    official: float, normalised: float,
) -> None:  # fmt: skip
    choices = (NUMBERED if gold == "2" else CHOICES) if task == "arc" else ()
    asked = example(task, answers=((gold,),), choices=choices)
    assert MATCH.score(asked, row(prediction)) == official
    assert MATCH_NORMALISED.score(asked, row(prediction)) == normalised


@pytest.mark.parametrize(
    ("prediction", "place"),
    [
        ("E", None),
        ("D: a clock", 3),
        ("**C**", 2),
        ("The correct option is (a).", 0),
        ("answer: 3", 2),
        ("A planet", None),
        ("It is a clock, I think", 3),
        ("", None),
    ],
)
def test_the_option_a_prediction_chooses(prediction: str, place: int | None) -> None:
    assert chosen_option(prediction, CHOICES) == place


@pytest.mark.parametrize(
    ("metric", "mean"), [(MATCH, 1 / 3), (MATCH_NORMALISED, 1 / 3), (MATCH_ANSWERED, 0.5)]
)
def test_abstentions_are_wrong_or_left_out_and_failures_always_left_out(
    example: Make, row: Make, metric: Any, mean: float
) -> None:
    rows = [row("a poet"), row("a cook"), row("no poet", status="abstained")]
    pairs = [(example(), one) for one in [*rows, row("poet", status="failed")]]
    assert metric.summarise(pairs) == pytest.approx(mean)

"""Metrics of single rows: knowledge, the evaluator, costs, and answers against gold answers."""

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from crag.papers.bench.examples import TASKS, TaskName
from crag.papers.metrics import METRICS
from crag.papers.metrics.matching import chosen_option
from crag.papers.metrics.rows import relevance

Make = Callable[..., Any]
TITLED = tuple(Document("text", metadata={"title": title}) for title in ("Bob", "Ada", "Cy"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (True, True, (1.0, 1.0, None)),
        (True, False, (1.0, 0.0, None)),
        (False, True, (0.0, 1.0, 1.0)),
        (False, False, (0.0, 0.0, 0.0)),
        (None, None, (None, None, None)),
    ],
)
def test_recall_before_and_after(
    example: Make, row: Make, before: bool | None, after: bool | None, expected: tuple[Any, ...]
) -> None:
    measured = row(retrieved_holds_answer=before, knowledge_holds_answer=after)
    metrics = [METRICS[name] for name in ("retrieved_recall", "knowledge_recall", "answer_found")]
    assert tuple(metric.score(example(), measured) for metric in metrics) == expected
    labelled = example("arc")
    assert all(metric.score(labelled, measured) is None for metric in metrics)


@pytest.mark.parametrize(
    ("scores", "of_set", "of_documents"),
    [
        ([-0.9, 0.8, -0.2], 1.0, 1.0),
        ([0.9, -0.8, -0.2], 1.0, 1 / 3),
        ([-0.9, -0.8, 0.0], 0.0, 2 / 3),
        ([0.1, 0.1, 0.1], 1.0, 1 / 3),
    ],
)
def test_against_gold_titles(
    example: Make, row: Make, scores: list[float], of_set: float, of_documents: float
) -> None:
    given = example(documents=TITLED, gold_titles=("Ada",))
    assert METRICS["evaluator_accuracy"].score(given, row(scores=scores)) == of_set
    assert METRICS["document_accuracy"].score(given, row(scores=scores)) == pytest.approx(
        of_documents
    )


def test_a_set_without_a_right_page_is_judged_right_by_no_yes(example: Make, row: Make) -> None:
    given = example(documents=TITLED, gold_titles=("Di",))
    assert METRICS["evaluator_accuracy"].score(given, row(scores=[-1.0, -0.2, -0.3])) == 1.0
    assert METRICS["evaluator_accuracy"].score(given, row(scores=[-1.0, 0.2, -0.3])) == 0.0


def test_labels_of_documents_come_before_titles(example: Make) -> None:
    labelled = tuple(
        Document("text", metadata={"title": "Ada", "relevant": right}) for right in (True, False)
    )
    assert relevance(example(documents=labelled, gold_titles=("Bob",))) == [True, False]
    assert relevance(example(documents=TITLED)) is None
    assert relevance(example(gold_titles=("Ada",))) is None


def test_failed_rows_cost_too(example: Make, row: Make) -> None:
    failed = row(usage={"llm_calls": 4}, outcome="failed")
    assert METRICS["llm_calls"].score(example(), failed) == 4.0
    assert METRICS["abstained"].score(example(), failed) is None
    assert METRICS["abstained"].score(example(), row(outcome="not_found")) == 1.0


MATCH, MATCH_NORMALISED = METRICS["match"], METRICS["match_normalised"]
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
    ("name", "likely"), [("match", 1.0), ("match_normalised", 1.0), ("match_answered", None)]
)
def test_likely_answers_count_but_among_the_sure_ones(
    example: Make, row: Make, name: str, likely: float | None
) -> None:
    said = {"answered": 1.0, "likely": likely, "failed": None}
    said["not_found"] = None if name == "match_answered" else 0.0
    found = {one: METRICS[name].score(example(), row("a poet", outcome=one)) for one in said}
    assert found == said


@pytest.mark.parametrize("task", TASKS)
def test_every_metric_takes_every_row(example: Make, row: Make, task: str) -> None:
    for outcome in ("answered", "likely", "not_found", "failed"):
        for metric in METRICS.values():
            value = metric.score(example(task), row("poet", outcome=outcome))
            assert value is None or isinstance(value, float)

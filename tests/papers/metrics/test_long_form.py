from collections.abc import Callable
from typing import Any

import pytest

from crag.papers.metrics import METRICS
from crag.papers.metrics.long_form import (
    mauve,
    mauve_text,
    rouge_lsum,
    sentences,
    str_em,
    without_citations,
)

Make = Callable[..., Any]


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("France won [1]. Brazil too [2][3].", "France won. Brazil too."),
        ("France won[1].", "France won."),
        ("Both [1, 2] did.", "Both did."),
        ("a [note] stays, its bracket goes", "a [note stays, its bracket goes"),
        ("one | two", "one two"),
    ],
)
def test_citations_are_deleted(text: str, plain: str) -> None:
    assert without_citations(text) == plain


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("France won, then Brazil.", 1.0),
        ("The FRENCH TEAM won.", 0.5),
        ("It was Brazilian joy.", 0.5),
        ("Nobody.", 0.0),
        ("", 0.0),
    ],
)
def test_str_em_is_the_share_of_sub_questions(answer: str, share: float) -> None:
    assert str_em(answer, [["France", "French team"], ["Brazil"]]) == share


def test_str_em_of_a_row(example: Make, row: Make) -> None:
    item = example("asqa", answers=(("France",), ("Brazil",), ("Peru",), ("Chad",)))
    answer = "France [1], Brazil [2].\nPeru and Chad, but too late."
    assert METRICS["str_em"].score(item, row(answer)) == 0.5
    assert METRICS["str_em"].score(example(), row(answer)) is None
    assert METRICS["str_em"].score(item, row(answer, status="failed")) is None


def test_rouge_by_hand() -> None:
    """Cut in sentences, the union of the longest common subsequences is counted by words."""
    reference = "the cat sat on the mat."
    assert rouge_lsum(reference, [reference]) == 1.0
    # Six words against three, of which "the cat sat" are common: P 3/3, R 3/6.
    assert rouge_lsum("the cat sat", [reference]) == pytest.approx(2 * 1 * 0.5 / 1.5)
    # The stemmer joins "sits"/"sit"; the case does not matter.
    assert rouge_lsum("CATS SITTING", ["cat sits"]) == 1.0
    assert rouge_lsum("dogs", [reference]) == 0.0


def test_mauve_compares_question_and_answer_of_a_hundred_words() -> None:
    assert mauve_text("Who won?", " France won! ") == "Who won? France won"
    assert len(mauve_text("Who won?", "word " * 200).split()) == 100


def test_mauve_has_no_value_of_a_row_nor_without_references(example: Make, row: Make) -> None:
    metric = mauve("no model is loaded")
    item = example("asqa", extra={"reference": "France."})
    assert metric.score(item, row("France")) is None
    assert metric.summarise([]) is None
    assert metric.summarise([(example("asqa"), row("France"))]) is None
    assert metric.summarise([(item, row("France", status="failed"))]) is None


def test_sentences_keep_their_citations_and_lose_surrounding_space() -> None:
    text = " It rained in St. Ives [1].  It was 3.5 mm. [2] Why? "
    assert sentences(text) == ["It rained in St. Ives [1].", "It was 3.5 mm. [2]", "Why?"]
    assert sentences(" ") == []

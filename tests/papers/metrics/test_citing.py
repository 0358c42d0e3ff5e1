from collections.abc import Callable
from typing import Any

import pytest

from crag.papers.metrics.citing import (
    citation_metrics,
    cited,
    passage_text,
)

Make = Callable[..., Any]
PASSAGES = {1: "red", 2: "blue", 3: "green", 4: "grey"}


def holds_words(premise: str, hypothesis: str) -> bool:
    """Entail what is said word for word, in any order."""
    words = hypothesis.lower().strip(".").split()
    return all(word in premise.lower().split() for word in words)


@pytest.mark.parametrize(
    ("answer", "recall", "precision"),
    [
        ("red [1].", 1.0, 1.0),
        ("red [2].", 0.0, 0.0),
        ("red.", 0.0, 0.0),
        ("red [5].", 0.0, 0.0),
        ("red [0].", 0.0, 0.0),
        # Both are needed.
        ("red blue [1][2].", 1.0, 1.0),
        ("red blue [1, 2].", 1.0, 1.0),
        # The second is not needed: one of two citations is right.
        ("red [1][2].", 1.0, 0.5),
        # Neither alone nor needed: red and blue entail without green.
        ("red blue [1][2][3].", 1.0, 2 / 3),
        # Only three count: the fourth would have been needed.
        ("red grey [1][2][3][4].", 0.0, 0.0),
        # One sentence supported by one citation, one not by another: 1/2 and 1/2.
        ("red [1]. Green [2].", 0.5, 0.5),
        # Citations of a sentence that cites nothing real do not count.
        ("red [1]. Blue [9].", 0.5, 1.0),
        ("red [1]. No citation here.", 0.5, 1.0),
        ("red [1].\nblue [2].", 1.0, 1.0),
    ],
)
def test_by_hand(answer: str, recall: float, precision: float) -> None:
    found = cited(answer, PASSAGES, holds_words)
    assert found is not None
    assert found == pytest.approx((recall, precision))


def test_the_model_reads_title_text_and_a_sentence_without_citations() -> None:
    asked: list[tuple[str, str]] = []

    def entails(premise: str, hypothesis: str) -> bool:
        asked.append((premise, hypothesis))
        return True

    cited("It is so [2][1].", {1: passage_text("A", "one"), 2: passage_text("B", "two")}, entails)
    assert asked[0] == ("Title: B\ntwo\nTitle: A\none", "It is so.")


def test_metrics_of_rows_that_say_what_they_cite(example: Make, row: Make) -> None:
    calls: list[str] = []

    def entails(premise: str, hypothesis: str) -> bool:
        calls.append(f"{premise} {hypothesis}")
        return "one" in premise

    recall, precision = citation_metrics(entails)
    citations = [
        {"number": 3, "title": "A", "text": "one"},
        {"number": 7, "title": "B", "text": "two"},
    ]
    answered = row("It is so [3]. So it is [7].", citations=citations)
    assert (recall.score(example(), answered), precision.score(example(), answered)) == (0.5, 0.5)
    assert len(calls) == 2
    assert (
        recall.score(example(), row("It is so [3].", citations=citations, status="failed")) is None
    )


def test_a_number_that_refers_to_nothing_supports_nothing(example: Make, row: Make) -> None:
    recall, precision = citation_metrics(holds_words)
    assert recall.score(example(), row("one [1].")) == 0.0
    assert precision.score(example(), row("one [1].")) == 0.0

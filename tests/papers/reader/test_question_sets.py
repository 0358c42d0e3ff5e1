"""Rows of a reader from questions whose truth is known."""

import random

import pytest

from crag.papers.reader.question_sets import (
    MOST_WORDS,
    altered,
    keywords,
    laid_out,
    reading_rows,
)
from crag.papers.reader.rows import ReadingRow
from crag.papers.self_rag.truths import Truth, read_truths
from tests.reflective import articles, written

FILLER = " ".join(f"Nothing of note happened in year {number}." for number in range(60))


def draw() -> random.Random:
    return random.Random(0)  # noqa: S311 - data, no secret


@pytest.fixture(scope="module")
def truths(tmp_path_factory: pytest.TempPathFactory) -> list[Truth]:
    rows = articles(24)
    long = rows[0] | {"title": "Long", "text": f"{FILLER} {rows[0]['text']} {FILLER}"}
    return read_truths(written(tmp_path_factory.mktemp("truths") / "t.jsonl", [*rows, long]))


def test_each_kind_is_as_its_table_says(truths: list[Truth]) -> None:
    rows = reading_rows(truths, 100, 0)
    assert rows == reading_rows(truths, 100, 0)
    kinds = {row.source: (row.entity, row.answer) for row in rows}
    assert kinds == {
        "answered": (1, 1), "removed": (1, 0), "altered": (None, 0), "neighbour": (None, 0),
        "elsewhere": (0, 0),
    }  # fmt: skip
    answers = {gold.answer for truth in truths for gold in truth.gold}
    for row in rows:
        assert len(row.text.split()) <= MOST_WORDS + 4
        if row.source == "answered":
            assert row.span is not None
            assert row.text[slice(*row.span)] in answers
            assert row.evidence
            ((start, end),) = row.evidence
            assert start <= row.span[0] < row.span[1] <= end
            assert row.text[end - 1] in ". "
        else:
            assert (row.span, row.evidence) == (None, [])
    removed = [row for row in rows if row.source == "removed"]
    of_question = {truth.question: truth.gold[0].answer for truth in truths if truth.gold}
    known = [row for row in removed if row.question in of_question]
    assert known
    assert not any(of_question[row.question] in row.text for row in known)


def test_rows_become_harder_and_keep_their_places() -> None:
    text = "It was built in 1700. It stands."
    row = ReadingRow(question="When was the old mill built?", title="Mill", text=text, answer=1,
                     evidence=[(0, 21)], span=(16, 20))  # fmt: skip
    made = [laid_out(row, random.Random(seed)) for seed in range(60)]  # noqa: S311 - data
    assert {one.text[slice(*one.span)] for one in made if one.span} == {"1700"}
    assert {one.question for one in made} == {row.question, "old mill built"}
    assert {one.title for one in made} == {"", "Mill"}
    assert {one.text.removesuffix(text) for one in made} == {"", "- ", "* ", "## Mill\n\n"}


@pytest.mark.parametrize(
    ("question", "other", "held"),
    [
        ("What was built in 1700?", "", "1700"),
        ("Did the mill of Ann Miller burn?", "There it saw Bob Smith.", "Bob Smith"),
        ("Did it burn?", "There it saw Bob Smith.", None),
    ],
)
def test_an_altered_question_asks_for_what_the_text_lacks(
    question: str, other: str, held: str | None
) -> None:
    text = "In 1700 it was built for Ann Miller."
    changed = altered(question, text, other, draw())
    if held is None:
        assert changed is None
    elif held == "1700":
        assert changed not in {None, question}
    else:
        assert changed is not None
        assert held in changed


def test_keywords() -> None:
    assert keywords("When was the mill built?") == "mill built"
    assert keywords("Who is it?") == "Who is it?"

"""What of a model's questions is used."""

import pytest

from crag.papers.reader.asked_questions import asking, judging, questions_in, sorted_questions
from crag.papers.reader.asked_units import Section

REPLY = """QUESTION: When does the pump stop by itself?
SAME IN OTHER WORDS: will it run dry if I fall asleep
SEARCH: pump automatic stop time"""
SECTION = Section("pump", "a.md", "Manual", "Safety > Manual", "Be careful. It stops\nby itself.")
UNIT = (12, len(SECTION.text))


@pytest.mark.parametrize("reply", [REPLY, REPLY.removeprefix("QUESTION: ")])
def test_a_reply_has_three_questions(reply: str) -> None:
    assert questions_in(reply) == {
        "plain": "When does the pump stop by itself?",
        "other": "will it run dry if I fall asleep",
        "search": "pump automatic stop time",
    }


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "QUESTION: Why?",
        "QUESTION: What does this passage say about pumps?",
        "QUESTION: What is mentioned of the pump and its lever?",
        "QUESTION: Wann hört die Pumpe von selbst auf?",
        "QUESTION: How do I use it?",
        f"QUESTION: {'pump lever ' * 21}?",
        "\nSEARCH: pump",
        "\nSEARCH: pump pump",
        f"\nSEARCH: {' '.join('abcdefghi')}",
    ],
)
def test_what_nobody_would_ask_is_left_out(reply: str) -> None:
    assert questions_in(reply) == {}


@pytest.mark.parametrize(("score", "kind"), [(1.2, "other"), (1.19, "loose"), (None, None)])
def test_a_question_in_other_words_is_sorted_by_its_score(
    score: float | None, kind: str | None
) -> None:
    questions = sorted_questions(REPLY, score)
    found = [one for one in questions if one.kind in {"other", "loose"}]
    assert [(one.kind, one.score) for one in found] == ([(kind, score)] if kind else [])
    assert {"plain", "search"} <= {one.kind for one in questions}


def test_the_model_sees_headings_what_stands_before_and_the_passage() -> None:
    messages = asking(SECTION, UNIT)
    assert messages[-1].text == (
        "Section: pump > Manual > Safety\nBefore it: Be careful.\nPassage: It stops by itself."
    )
    examples = [questions_in(message.text) for message in messages[2:-1:2]]
    assert [len(one) for one in examples] == [3] * 6
    assert judging("Does it stop?", SECTION, UNIT)[-1].text == (
        "Question: Does it stop?\nPassage: pump > Manual > Safety\nIt stops by itself.\n"
        "Does the passage answer the question?"
    )

"""Answers that say nothing are told from short ones."""

import pytest

from crag.answering.emptiness import is_wordless, why_empty


@pytest.mark.parametrize(
    "answer", ["[4]", "[1][2].", " [1], [2]; ", "Passage 4", '<passage number="4">', "(2)", "…",
               "[1] and [2]", "- [1]\n- [2]", "Source: [3]", "**[1]**", '[Passage number "7"]']
)  # fmt: skip
def test_citations_and_marks_alone_are_no_words(answer: str) -> None:
    assert is_wordless(answer)
    assert why_empty("Who?", answer) == "wrote no words"


@pytest.mark.parametrize(
    "answer", ["8000", "Yes [1].", "Port 80 [1]", "A", "`[1]`", "`|` [1]", "四"]
)
def test_anything_else_is(answer: str) -> None:
    assert not is_wordless(answer)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What goes into the guacamole?", "What goes into the guacamole is listed in passage 2."),
        ("Which forms have templates?", '[Passage number "3"] forms have templates.'),
        ("Which section names the scripts?", "The section that names the scripts is [2]."),
        ("My bank wants the number. What is it?", "The bank wants the number. [1]"),
        ("Please, how are filters changed?", "Passage 4 describes how filters are changed."),
    ],
)
def test_an_answer_of_the_words_of_the_question_says_nothing(question: str, answer: str) -> None:
    assert why_empty(question, answer) == "only repeated the question"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What goes into the guacamole?", "Avocados go into the guacamole [2]."),
        ("How many workers are there?", "There are 4 workers [1]."),
        ("Is it on by default?", "It is on by default [1]."),
        ("My script writes TRUE with blanks. Is that on?", "That is on [1]."),
        ("Which is read first, the file or the variable?", "The variable is read first [1]."),
        ("With on=False, what value is passed to the function?", "The value passed is False [1]."),
        ("Tell me whether the flag is on.", "The flag is on [1]."),
        ("What is the state of the switch?", "The state of the switch is on [1]."),
        ("What is the default?", "There is no default [1]."),
        ("What is the port?", "The port is number 8000 [1]."),
        ("What does it return?", "It returns a list [1]."),
        ("How many switches are there?", "There is one switch [1]."),
        ("Which operator is used?", "The operator `|` is used [1]."),
        ("default of the switch", "The default of the switch [1]."),
        ("Wie wird der Filter gewechselt?", "Der Filter wird gewechselt [1]."),
    ],
)
def test_a_short_answer_says_something(question: str, answer: str) -> None:
    assert not why_empty(question, answer)


def test_an_answer_that_ends_where_it_should_begin_gives_none() -> None:
    assert why_empty("How do I run it?", "Use this command: [4]").startswith("announced")
    assert not why_empty("How do I run it?", "Use this command: `make run` [4]")

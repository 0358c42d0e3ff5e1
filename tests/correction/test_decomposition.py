"""Splitting a question: by rule, by a model's reply, and with answers to earlier parts."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.correction.decomposition import bounded, parts_by_rule, read_parts, with_answers


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How is it built? Where is it?", None),
        (
            "How long is parental leave? Who approves travel?",
            ["How long is parental leave?", "Who approves travel?"],
        ),
        (
            "I start in May. How long is annual leave? Who approves travel?",
            ["I start in May. How long is annual leave?", "Who approves travel?"],
        ),
        (
            "Who approves travel, and how long is annual leave?",
            ["Who approves travel?", "How long is annual leave?"],
        ),
        (
            "In which year did the mill open and who designed the lighthouse?",
            ["In which year did the mill open?", "Who designed the lighthouse?"],
        ),
        (
            "Is a proxy supported and how do I set the timeout?",
            ["Is a proxy supported?", "How do I set the timeout?"],
        ),
        (
            "What is the default port and can I change the host name?",
            ["What is the default port?", "Can I change the host name?"],
        ),
        ("What is the port and the host and is also needed?", None),
        ("What can be undone without a form, and what normally can't?", None),
        ("What can be undone without a form, and what can not?", None),
        ("Who wrote the first program, and when did she write it?", None),
        ("Who designed the lighthouse and what are its colours?", None),
        (
            "Who approves travel? How do I set the proxy so that it is used?",
            ["Who approves travel?", "How do I set the proxy so that it is used?"],
        ),
        ("Who and what is needed?", None),
        ("What is the difference between refining and searching?", None),
        ("Tell me who approves travel and what it costs.", None),
        ("The manual says who signs. Tell me what to do and how it works?", None),
        ("Who approves travel? How long is leave? Answer in German.", None),
        ("Who approves travel", None),
        ("???", None),
        ("", None),
    ],
)
def test_the_rule(question: str, parts: list[str] | None) -> None:
    assert parts_by_rule(question, 3) == (parts or [question])


def test_parts_beyond_the_bound_are_asked_together() -> None:
    asked = "Who is A? Who is B? Who is C? Who is D?"
    assert parts_by_rule(asked, 3) == ["Who is A?", "Who is B?", "Who is C? Who is D?"]
    assert bounded(["a", "b"], 2) == ["a", "b"]
    assert bounded(["a", "b", "c"], 1) == ["a b c"]


@given(st.text(st.sampled_from("aw ?.,#\n")) | st.text(), st.integers(2, 5))
def test_the_rule_loses_no_word(question: str, most: int) -> None:
    parts = parts_by_rule(question, most)
    assert 1 <= len(parts) <= most

    def words(text: str) -> list[str]:
        return [word for word in re.findall(r"\w+", text.lower()) if word not in {"and", "also"}]

    assert words(" ".join(parts)) == words(question)


def said(*questions: object) -> str:
    return json.dumps({"questions": questions})


@pytest.mark.parametrize(
    ("reply", "parts"),
    [
        (said("Who?", "Where was  #1\nborn?"), ["Who?", "Where was #1 born?"]),
        (f"Sure!\n```json\n{said('Who?')}\n```", ["Who?"]),
        (said("A?", "B?", "C?"), ["A?", "B? C?"]),
        (said(), None),
        (said("Who?", ""), None),
        (said("Where was #1 born?"), None),
        (said("Who?", "Where was #2 born?"), None),
        (said("Who?", "Where was #0 born?"), None),
        (said("Who?", 7), None),
        (said("W" * 51), None),
        ('["Who?"]', None),
        ("Who? Where?", None),
        ("}{", None),
    ],
)
def test_a_reply_is_read_or_is_none(reply: str, parts: list[str] | None) -> None:
    assert read_parts(reply, 2, 50) == parts


@given(st.text())
def test_any_reply_is_read_without_raising(reply: str) -> None:
    assert read_parts(reply, 3, 100) is None or "questions" in reply


def test_answers_take_their_places_without_marks() -> None:
    asked = ["Who wrote it?", "Who built it?"]
    answers = ["“Ada Lovelace wrote it.” [3]", None]
    assert with_answers("Did #1 know #2, or #3?", asked, answers) == (
        "Did Ada Lovelace know the answer to “Who built it?”, or #3?"
    )
    long = with_answers("About #1?", ["?"], ["word " * 100])
    assert len(long) < 220
    assert long.endswith("word?")


@pytest.mark.parametrize(
    ("said", "put"),
    [
        ("The director of Alien is Ridley Scott. [1]", "Ridley Scott"),
        ("Ridley Scott directed Alien.", "Ridley Scott"),
        ("Alien was directed by J. R. R. Scott.", "J. R. R. Scott"),
        ("Ridley Scott", "Ridley Scott"),
        ("a man from Leeds", "a man from Leeds"),
        ("It was Ridley Scott, in the UK.", "It was Ridley Scott, in the UK"),
        ("nobody knows", "nobody knows"),
        ("1979", "1979"),
    ],
)
def test_of_a_sentence_its_one_new_name_takes_the_place(said: str, put: str) -> None:
    asked = with_answers("Where was #1 born?", ["Who directed Alien?"], [said])
    assert asked == f"Where was {put} born?"

"""Typing errors in questions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag.text.spelling import FEWEST_LETTERS, respelled

TEXTS = [
    "The harbour of Quellmoor was dug in 1731, and its keeper was Ilse Brandt.",
    "Lemons infuse for six days. Set the default of `websockets` in the configuration.",
    "The grade of redis is a sorrow and a morrow.",
]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("When was the harbuor of Quellmoor dug?", "When was the harbour of Quellmoor dug?"),
        ("When was the harbour of Qeullmoor dug?", "When was the harbour of Quellmoor dug?"),
        ("How long do the lemnos inufse?", "How long do the lemons infuse?"),  # Lemnos is known.
        ("what is the defaul of websockts", "what is the defaul of websockets"),
        ("Which confguration is the deafult?", "Which configuration is the default?"),
        ("How long do leons infuse in the harbor?", "How long do lemons infuse in the harbor?"),
        ("How deep is Quelmoor?", "How deep is Quellmoor?"),
        ("How long must I wiat for the reciept?", "How long must I wiat for the receipt?"),
    ],
)
def test_what_neither_documents_nor_english_have_is_corrected(typed: str, meant: str) -> None:
    assert respelled(typed, TEXTS) == meant


@pytest.mark.parametrize(
    "question",
    [
        "Which harbours are there?",  # Another form of a word of theirs,
        "How do I build it with CMakes?",  # a name with a capital within,
        "What does `harbuor` mean?",  # code,
        'What does "harbuor" mean?',  # a quotation,
        "What does harbuor.keeper(lemnos) do with --defualt=qeullmoor and /etc/harbuor?",
        "What does utf_81 do?",  # a number is no word.
        "Can guacamole be made of tulips?",  # and words of everyday English.
        "Shouldn't it be there?",
        "Does it build with gradle and redix?",
        "Is the lighthouse of Cape Merrow there?",
        "Was ist ein Hafne?",
        "",
    ],
)
def test_what_may_be_meant_stays(question: str) -> None:
    assert respelled(question, TEXTS) == question


def test_what_is_clearly_in_another_language_stays() -> None:
    texts = ["Der Hafen wurde 1731 ausgehoben, und die Kündigung braucht eine Frist."]
    asked = "Wann wurde der Hafen ausgehoebn, und wie lange ist die Wartezeti?"
    assert respelled(asked, texts) == asked


@given(st.text(max_size=200))
def test_only_words_change_and_by_one_error_each(question: str) -> None:
    read = respelled(question, TEXTS)
    pairs = zip(re.findall(r"\w+", question), re.findall(r"\w+", read), strict=True)
    changed = [(typed, meant) for typed, meant in pairs if typed != meant]
    assert all(len(typed) >= FEWEST_LETTERS for typed, _ in changed)
    assert all(abs(len(typed) - len(meant)) <= 1 for typed, meant in changed)
    assert re.sub(r"\w+", "", question) == re.sub(r"\w+", "", read)

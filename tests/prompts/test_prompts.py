"""Prompts load, and values cannot act as templates."""

from importlib.resources import files

import pytest

from crag.prompts import render

ASKED = "Q $knowledge"
VALUES = {
    "question": ASKED,
    "history": "H",
    "knowledge": "K [user] $question",
    "not_found": "N",
    "options": "A: O",
    "answer": ASKED,
    "topic": "T",
    "fact": ASKED,
}
NAMES = sorted(
    entry.name.removesuffix(".md")
    for entry in files("crag.prompts").iterdir()
    if entry.name.endswith(".md")
)


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_renders_completely(name: str) -> None:
    messages = render(name, **VALUES)
    assert messages[-1].type == "human"
    assert ASKED in str(messages[-1].content)
    text = "".join(str(message.content) for message in messages)
    assert "$not_found" not in text


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        render("answer_default", question="Q")

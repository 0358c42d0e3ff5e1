"""A question of several parts on the page: its parts, their actions, and one answer."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.page.asking import ask, changes, watch_nodes

pytestmark = pytest.mark.browser
TWO = "What is a knowledge strip? How tall is the leaning tower of Pisa?"


def test_each_part_is_shown_with_its_action(visit: Callable[..., Any], demo: str) -> None:
    page = visit(f"{demo}&graph=decomposed")
    watch_nodes(page)
    ask(page, TWO, until="#answer[data-phase=done]")
    section = page.locator("#parts")
    assert section.locator("h2").inner_text() == "The question in 2 parts"
    first, second = section.locator("li").all_inner_texts()
    assert "What is a knowledge strip?" in first
    assert " correct, best score +0." in first
    assert "Pisa" in second
    assert ", best score −0." in second
    assert "; not found" in second
    answer = page.inner_text("#answer-body")
    assert "a small piece of text" in answer
    assert "I could not find this in the documents." in answer
    assert page.locator("#answer .sources li").count() >= 1
    order = changes(page)
    assert order.index("decompose done") < order.index("answer_part done")
    assert order.index("answer_part done") < order.index("combine done")
    assert "answer_whole done" not in order
    ask(page, "What is a knowledge strip?", until="#answer[data-phase=done]")
    assert section.is_hidden()

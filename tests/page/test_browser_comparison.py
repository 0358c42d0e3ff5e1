"""Plain retrieval beside correction, at one click."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.page.accessibility import violations
from tests.page.asking import ask, phase

pytestmark = pytest.mark.browser
STRIP = "What is a knowledge strip?"
BUTTON = "#answer button >> text=Compare with plain retrieval"
Visit = Callable[..., Any]


def compared(page: Any) -> Any:
    """Click, and return the comparison once it is there."""
    page.click(BUTTON)
    page.wait_for_selector("#comparison .change", state="attached")
    return page.locator("#comparison")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_one_click_shows_both_answers_and_what_was_dropped(
    visit: Visit, demo: str, scheme: str
) -> None:
    page = visit(demo, color_scheme=scheme)
    ask(page, STRIP)
    kept = page.inner_text("#answer .text")
    comparison = compared(page)
    assert comparison.locator("h3").all_inner_texts() == ["Plain retrieval", "Corrected"]
    plain, corrected = comparison.locator(".text").all_inner_texts()
    assert corrected == kept
    assert "knowledge strip" in plain
    ways = comparison.locator(".beside .hint").all_inner_texts()
    assert ways[0].startswith("10 retrieved → ")
    assert "→ correct → " in ways[1]
    assert "correct" not in ways[0]
    dropped = comparison.locator("[data-change=dropped] li")
    empty = page.locator("#documents details.empty").count()
    assert dropped.count() == empty > 0  # Documents of which correction kept nothing.
    assert f"− {empty} documents dropped" in comparison.inner_text()
    assert comparison.locator("[data-change=added] li").count() == 0
    assert page.locator("#history .entry").first.inner_text().count("Plain") == 0
    assert violations(page) == []


def test_an_answer_that_was_not_found_is_compared_too(visit: Visit, demo: str) -> None:
    page = visit(demo, viewport={"width": 390, "height": 844})
    ask(page, "Who painted the ceiling of the Sistine Chapel?")
    assert phase(page) == "abstained"
    comparison = compared(page)
    assert comparison.locator("[data-change=dropped] li").count() == 10
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_it_goes_when_something_else_is_asked(visit: Visit, demo: str) -> None:
    page = visit(demo)
    ask(page, STRIP)
    compared(page)
    ask(page, "What is the action Ambiguous?", until="#asked >> text=Ambiguous")
    assert page.locator("#comparison").is_hidden()


def test_only_correction_is_compared(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    ask(page, "Who wrote the first program?")
    assert page.locator(BUTTON).count() == 0

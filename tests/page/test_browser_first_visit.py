"""What somebody sees who opens the page for the first time, and how sources are shown and kept."""

from collections.abc import Callable
from typing import Any

import pytest

from crag.graph_registry import OFFERED
from tests.page.accessibility import violations
from tests.page.asking import ask, phase

pytestmark = pytest.mark.browser
STRIP = "What is a knowledge strip?"
Visit = Callable[..., Any]


def test_a_first_visit_begins_at_the_field_with_questions_to_ask(visit: Visit, demo: str) -> None:
    page = visit(demo)
    page.wait_for_selector(".examples")
    assert page.evaluate("document.activeElement.id") == "question"
    names = page.locator("#graphs label").all_inner_texts()
    assert sorted(names) == sorted(entry.title for entry in OFFERED.values())
    assert page.inner_text("#about") == OFFERED["crag"].description
    assert page.inner_text(".connected") == (
        "Answers are quoted from your documents; no model writes them. The web is not searched."
    )
    assert violations(page) == []
    examples = page.locator(".examples button")
    assert examples.count() == 3
    question = examples.first.inner_text()
    examples.first.click()
    page.wait_for_selector("#answer[data-phase=done], #answer[data-phase=unsure]")
    assert page.inner_text("#asked") == question
    assert OFFERED["crag"].title in page.inner_text("#history")


def test_sources_stand_by_file_with_heading_and_lines(visit: Visit, demo: str) -> None:
    page = visit(demo)
    page.wait_for_selector("#library:not([hidden])")
    ask(page, STRIP)
    source = page.locator("#answer .sources li").first
    assert source.locator(".file .place").inner_text() == "method/refinement.md"
    assert "What a knowledge strip is" in source.locator(".cites").first.inner_text()
    files = page.locator("#answer .sources .file").all_inner_texts()
    assert len(files) == len(set(files))
    source.locator(".opens").first.click()
    page.wait_for_selector("#source mark")
    address = page.get_attribute("#source .head a", "href")
    assert address == "/?source=method%2Frefinement.md#L10-12"


def test_an_address_opens_a_source_at_its_lines(visit: Visit, demo: str) -> None:
    page = visit(f"{demo}&source=method/refinement.md#L10-12")
    page.wait_for_selector("#source .cited")
    cited = page.locator("#source .cited")
    assert [line.get_attribute("value") for line in cited.all()] == ["10", "11", "12"]
    assert page.get_attribute("#source .head a", "href").endswith("refinement.md#L10-12")
    page.keyboard.press("Escape")
    assert page.locator("#source").is_hidden()


def test_an_answer_is_copied_with_its_sources(visit: Visit, demo: str) -> None:
    page = visit(demo, permissions=["clipboard-read", "clipboard-write"])
    ask(page, STRIP)
    page.click("#answer button >> text=Copy as Markdown")
    page.wait_for_selector("#answer button >> text=Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    answer, sources = copied.split("\n\n- ", 1)
    assert answer.startswith("“A knowledge strip is a small piece of text")
    base = demo.partition("?")[0]
    assert sources.startswith("[1] [Knowledge refinement")
    assert f"]({base}?source=method%2Frefinement.md#L10-12)\n" in sources


def test_a_model_that_fails_is_not_told_as_an_answer_that_was_not_found(
    visit: Visit, site: str
) -> None:
    page = visit(f"{site}/?graph=failing")
    ask(page, "Who wrote the first program?")
    assert phase(page) == "abstained"
    told = page.inner_text("#answer-body")
    assert "could not find" not in told
    assert "The model failed, so there is no answer." in told
    assert "nobody listens at" in told


def test_no_search_is_said_where_none_is_connected(visit: Visit, demo: str) -> None:
    page = visit(demo)
    ask(page, "Who painted the ceiling of the Sistine Chapel?")
    assert phase(page) == "abstained"
    told = page.inner_text("#documents .verdict")
    assert told == (
        "incorrect The documents do not help, and are set aside. No web search is connected."
    )
    assert "the web is searched" not in page.inner_text("main")


def test_rejected_candidates_are_folded_and_no_outcome_is_cut_off(visit: Visit, demo: str) -> None:
    page = visit(f"{demo}&graph=self_rag")
    ask(page, STRIP)
    rows = page.locator("#critiques tbody tr:visible")
    assert rows.count() == page.locator("#critiques tr.chosen").count() >= 1
    box, frame = rows.first.locator("td").first.bounding_box(), page.viewport_size
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= frame["width"]
    page.click("#critiques summary >> text=rejected candidates")
    assert rows.count() == page.locator("#critiques tbody tr").count() > 1

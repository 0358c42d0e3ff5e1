"""The page says what is so, shows text as it is meant, and lets the keyboard pass quickly."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.page.asking import ask, open_everything, set_setting
from tests.page.serving import free_port

pytestmark = pytest.mark.browser
ADA = "Who wrote the first program?"
Visit = Callable[..., Any]


def test_a_web_that_cannot_be_searched_was_not_searched(visit: Visit, demo: str) -> None:
    page = visit(demo)
    ask(page, "Who painted the ceiling of the Sistine Chapel?")
    web = page.inner_text("#web")
    assert "Searched for" not in web
    assert "The web was not searched: no web search is configured" in web
    for node in ("rewrite", "confirm_search", "search", "read_pages", "select"):
        box = page.locator(f"[data-node='web:{node}']")
        assert box.get_attribute("data-state") == "passed", node
        assert "✓" not in box.inner_html()
        assert "had nothing to do" in str(box.get_attribute("aria-label"))
    assert page.locator("[data-node=grade][data-state=done]").count() == 1


def test_markdown_is_drawn_and_html_stays_text(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    open_everything(page)
    strips = page.locator("#documents .documents > li").first
    said = strips.inner_text()
    for mark in ("##", "**", "`", "](", "\n- "):
        assert mark not in said
    assert "<b>No HTML</b> a picture" in said
    assert strips.locator("strong").all_inner_texts() == ["first"]
    assert strips.locator(".heading em").all_inner_texts() == ["Lovelace"]
    assert strips.locator(".listed li").all_inner_texts() == ["for an engine", "in 1843"]
    assert strips.locator("a[target]").get_attribute("href") == "https://example.org/n"
    assert page.locator("main :is(img, b)").count() == 0
    plain = page.locator("#documents .documents > li").nth(1).inner_text()
    assert "the *engine* of __init__" in plain  # A text file means what it says.
    assert page.locator("#answer .text strong").count() == 1


def test_a_sole_citation_is_the_first(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    assert page.locator("#answer .text .cite").all_inner_texts() == ["1"]
    assert page.locator("#answer .sources .cite").all_inner_texts() == ["1"]
    page.click("#answer .text .cite")
    assert page.evaluate("document.activeElement.id") == "strip-1"
    assert "No HTML" in page.inner_text("#strip-1")  # The second strip that the model was given.


def test_few_stops_of_tab_lie_between_question_and_citation(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    page.focus("#question")
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "cite":
            break
    assert page.evaluate("document.activeElement.className") == "cite"
    page.click("#way-line")
    page.focus(".node[tabindex='0']")
    first = page.evaluate("document.activeElement.dataset.node")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.node") != first
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.node") == first


def test_the_answer_can_be_skipped_to(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    skip = page.locator(".skip >> text=Skip to the answer")
    skip.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "cite"


@pytest.mark.parametrize("width", [390, 1280, 1500])
def test_the_banner_keeps_away_from_the_edges(visit: Visit, site: str, width: int) -> None:
    page = visit(f"{site}/?graph=nothing", viewport={"width": width, "height": 800})
    box = page.locator("#notice").bounding_box()
    assert box["x"] >= 15
    assert box["x"] + box["width"] <= width - 15
    card = page.locator("#ask").bounding_box()
    assert abs(box["x"] - card["x"]) <= 1


def test_a_sentence_ends_once(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    gone = f"http://127.0.0.1:{free_port()}/"
    page.route("**/threads", lambda route: route.continue_(url=gone))
    ask(page, ADA)
    assert page.inner_text("#status").endswith("Is “crag serve” still running?")


def test_settings_are_found_by_words_and_stand_in_three_levels(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    page.click("#open-settings")
    levels = page.locator("#settings .level")
    assert [one.get_attribute("data-level") for one in levels.all()] == [
        "basic", "advanced", "ablations",
    ]  # fmt: skip
    assert page.locator("#settings .field:visible").count() < 20
    assert page.locator("#settings [name=k]").is_visible()
    assert page.locator("#settings [name=without]").is_hidden()
    page.fill("#search-settings", "threshold")
    names = {field.get_attribute("name") for field in page.locator(
        "#settings .field:visible :is(input, select, textarea)").all()}  # fmt: skip
    assert {"upper", "lower", "strip_threshold", "single_threshold"} <= names
    assert "k" not in names
    assert f"{len(names)} settings found" in page.inner_text("#settings .found")
    page.fill("#search-settings", "leave out an action")
    page.select_option("#settings [name=without]", "ambiguous")
    page.click("#settings button[type=submit]")
    assert page.locator("#changed li").all_inner_texts() == ["without = ambiguous"]
    page.click("#open-settings")
    assert page.locator("#settings [name=without]").is_visible()  # What is changed is in view.
    page.fill("#search-settings", "nothing has this name")
    assert "0 settings found" in page.inner_text("#settings .found")


def test_conditional_edges_carry_their_action(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    labels = page.locator("#graph .condition").all_text_contents()
    assert set(labels) == {
        "correct, ambiguous",
        "incorrect, ambiguous",
        "nothing asked",
        "follow-up",
        "first question",
    }


def test_a_question_says_what_it_cost_and_where_the_time_went(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    set_setting(page, input_price="2", output_price="10")
    ask(page, ADA)
    numbers = page.locator("#numbers > dl").inner_text().split("\n")
    told = dict(zip(numbers[::2], numbers[1::2], strict=True))
    assert (told["input tokens"], told["output tokens"], told["cost"]) == ("1,000", "100", "0.003")
    page.click("#numbers .times summary")
    nodes = page.locator("#numbers .times dt").all_inner_texts()
    assert {"retrieve", "grade", "refine", "generate"} <= set(nodes)
    with page.expect_download() as download:
        page.click("#numbers > button")
    trace = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert trace["state"]["usage"]["cost"] == 0.003
    assert all(step["milliseconds"] >= 0 for step in trace["steps"])


def test_text_runs_as_its_language_is_written(visit: Visit, site: str) -> None:
    """An Arabic sentence begins at the right, and its full stop stands at the left."""
    page = visit(f"{site}/?graph=plain")
    ask(page, "متى كتبت؟ Ada wrote it first.")
    places = """() => {
      const words = document.getElementById("asked").firstChild;
      const place = (at) => {
        const range = document.createRange();
        range.setStart(words, at);
        range.setEnd(words, at + 1);
        return range.getBoundingClientRect().x;
      };
      return [place(0), place(words.length - 1), place(words.length - 2), innerWidth];
    }"""
    first, stop, before, width = page.evaluate(places)
    assert width / 2 < first
    assert stop < before

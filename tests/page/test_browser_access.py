"""For everybody: keyboard, screen reader, narrow and dark screens, slow machines."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.page.accessibility import violations
from tests.page.asking import ask, open_everything, phase, set_setting

pytestmark = pytest.mark.browser
ADA = "Who wrote the first program?"
Visit = Callable[..., Any]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_state(visit: Visit, site: str, scheme: str) -> None:
    page = visit(f"{site}/?graph=hostile", color_scheme=scheme)
    assert violations(page) == []
    page.click("#open-settings")
    assert violations(page) == []
    page.keyboard.press("Escape")
    set_setting(page, confirm_web=True)
    ask(page, ADA, until="#confirm:not([hidden])")
    assert violations(page) == []
    page.press("#query", "Enter")
    page.wait_for_selector("#answer[data-phase=done]")
    open_everything(page)
    assert violations(page) == []
    set_setting(page, max_question_characters="3")
    ask(page, ADA, until="#answer[data-phase=failed]")
    assert page.locator("#earlier .turn").count() == 1
    assert violations(page) == []
    page.click("#open-settings")
    page.fill("#search-settings", "token")
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_critiques(visit: Visit, demo: str, scheme: str) -> None:
    page = visit(f"{demo}&graph=self_rag", color_scheme=scheme)
    ask(page, "What is a knowledge strip?")
    assert page.locator("#critiques tbody tr").count() > 1
    assert violations(page) == []


def test_axe_would_find_something(visit: Visit, site: str) -> None:
    page = visit(site)
    page.evaluate("document.getElementById('question').labels[0].remove()")
    page.evaluate("document.getElementById('question').removeAttribute('placeholder')")
    assert any("label" in violation for violation in violations(page))


def focused(page: Any) -> str:
    """Return the id, name or text of what has the focus."""
    return str(page.evaluate(
        "(({id, name, textContent}) => id || name || textContent)(document.activeElement)"
    ))  # fmt: skip


def tab_to(page: Any, wanted: str, *, back: bool = False) -> None:
    """Press Tab until something is focused; it has to be reached within a hundred."""
    for _ in range(100):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if wanted in focused(page):
            return
    raise AssertionError(f"{wanted} cannot be reached with Tab")


def test_the_keyboard_alone_does_everything(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=hostile")
    keyboard = page.keyboard
    assert focused(page) == "question"
    tab_to(page, "Skip to the question", back=True)
    keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#question"
    tab_to(page, "graph")
    keyboard.press("ArrowRight")
    keyboard.press("ArrowLeft")
    assert page.locator("#graphs input:checked").get_attribute("value") == "hostile"
    tab_to(page, "open-settings")
    keyboard.press("Enter")
    tab_to(page, "setting-confirm_web")
    keyboard.press("Space")
    keyboard.press("Enter")
    assert page.locator("#changed li").count() == 1
    assert focused(page) == "question"
    keyboard.type(ADA)
    keyboard.press("Enter")
    page.wait_for_selector("#confirm:not([hidden])")
    keyboard.press("Tab")
    keyboard.type(" again")
    keyboard.press("Enter")
    page.wait_for_selector("#answer[data-phase=done]")
    assert "again" in page.inner_text("#web .query")
    page.focus("#question")
    tab_to(page, "way-line")
    keyboard.press("Enter")
    tab_to(page, "open run")
    for _ in range(12):
        keyboard.press("ArrowRight")
        if focused(page).startswith("retrieve"):
            break
    keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#documents"
    page.focus("#answer-body")
    keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "cite"
    keyboard.press("Enter")
    assert focused(page) == "strip-1"
    keyboard.press("Tab")
    keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.cite") == "1"
    page.focus("#strip-3")
    tab_to(page, "Download the trace")
    with page.expect_download():
        keyboard.press("Enter")
    tab_to(page, ADA)
    keyboard.press("Enter")
    assert phase(page) == "done"


def test_the_keyboard_leads_from_load_to_the_first_source(visit: Visit, demo: str) -> None:
    page = visit(demo)
    page.wait_for_selector("#library:not([hidden])")
    page.keyboard.type("What is a knowledge strip?")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer[data-phase=done]", timeout=60_000)
    tab_to(page, "lines 10-12")
    page.keyboard.press("Enter")
    page.wait_for_selector("#source mark")
    assert page.evaluate("document.activeElement.closest('dialog').id") == "source"
    page.keyboard.press("Escape")
    assert focused(page) == "lines 10-12"


def test_nothing_loads_from_elsewhere(visit: Visit, demo: str) -> None:
    page = visit("about:blank", ready="html")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(demo)
    page.wait_for_selector("#library:not([hidden])")
    ask(page, "What is a knowledge strip?")
    page.click("#answer .sources .opens")
    page.wait_for_selector("#source mark")
    page.keyboard.press("Escape")
    page.click("#answer button >> text=Compare with plain retrieval")
    page.wait_for_selector("#comparison .change", state="attached")
    base = demo.partition("?")[0]
    assert len(asked) > 40  # Files of the page, and what it asks the server.
    assert [url for url in asked if not url.startswith(base)] == []


def test_a_run_is_cancelled_with_the_keyboard(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    ask(page, ADA, until=".draft")
    tab_to(page, "cancel")
    page.keyboard.press("Enter")
    page.wait_for_selector("#answer[data-phase=cancelled]")
    assert focused(page) == "question"


def test_every_step_is_read_out(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=hostile")
    assert page.get_attribute("#status", "role") == "status"
    page.evaluate("""() => {
      window.said = [];
      new MutationObserver(() => said.push(document.getElementById("status").textContent))
        .observe(document.getElementById("status"), {childList: true});
    }""")
    ask(page, ADA)
    said = " ".join(page.evaluate("window.said"))
    for words in (
        "grade: ambiguous; the best score is +0.30",
        "Now writing the answer",
        "Answered",
    ):
        assert words in said
    label = page.get_attribute("[data-node='web:search']", "aria-label")
    assert label.startswith("search, done")


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_is_wider_than_a_narrow_screen(visit: Visit, demo: str, width: int) -> None:
    for graph, question in (
        ("self_rag", "What is a knowledge strip?"),
        ("crag", "What does the setting ambiguous_text do?"),
    ):
        page = visit(f"{demo}&graph={graph}", viewport={"width": width, "height": 800})
        ask(page, question)
        page.locator("#documents summary").first.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".md table").count(), "a table is shown"
    page.click("#open-settings")
    assert page.evaluate("document.querySelector('dialog').scrollWidth") <= width


def first_paint(page: Any) -> float:
    """Return after how many milliseconds something was seen."""
    page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length")
    found = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return float(found)


def crowd() -> float:
    """Return how many wait for each processor; an idle machine has 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def test_the_page_is_painted_at_once(visit: Visit, site: str) -> None:
    """In 0.3 s on an idle machine; where more wait for each processor, in as many times that."""
    page = visit(site)
    limit = 300 * crowd()
    fastest = first_paint(page)
    for _ in range(5):
        if fastest < limit:
            break
        page.reload()
        fastest = min(fastest, first_paint(page))
    assert fastest < limit


def test_a_hundred_strips_hold_nothing_up(visit: Visit, site: str) -> None:
    """No longer than 0.2 s on an idle machine, measured as above."""
    page = visit(f"{site}/?graph=many")
    ask(page, "How long does the kettle take?")
    open_everything(page)
    page.wait_for_function("() => document.querySelectorAll('.strip').length >= 100")
    page.wait_for_timeout(300)
    assert max(page.evaluate("seen.long"), default=0) <= 200 * crowd()
    page.evaluate(
        "setTimeout(() => { for (const end = performance.now() + 260; performance.now() < end;); })"
    )
    page.wait_for_function("() => Math.max(0, ...seen.long) > 200")

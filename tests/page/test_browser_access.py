"""For everybody: keyboard, screen reader, narrow and dark screens, slow machines."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.page.browser import LAST, ask, open_basis, set_setting, violations

pytestmark = pytest.mark.browser
ADA = "Who wrote the first program?"
PHONE = {"width": 390, "height": 844}
Visit = Callable[..., Any]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing_in_any_state(visit: Visit, site: str, scheme: str, width: int) -> None:
    page = visit(site, color_scheme=scheme, viewport={"width": width, "height": 900})
    assert violations(page) == []
    page.click("#open-settings")
    assert violations(page) == []
    page.keyboard.press("Escape")
    set_setting(page, confirm_web=True)
    ask(page, ADA, until=f"{LAST}[data-phase=waiting]")
    assert violations(page) == []
    page.click("text=Search the web")
    page.wait_for_selector(f"{LAST}[data-phase=answered]", timeout=60_000)
    open_basis(page)
    page.click(f"{LAST} .way summary")
    assert violations(page) == []
    if width == PHONE["width"]:
        page.click("#side")
        assert page.locator("#history").is_visible()
        assert violations(page) == []


def focused(page: Any) -> str:
    """Return the id, name or text of what has the focus."""
    return str(page.evaluate(
        "(({id, name, ariaLabel, textContent}) => id || name || ariaLabel || textContent)"
        "(document.activeElement)"
    ))  # fmt: skip


def tab_to(page: Any, wanted: str, *, back: bool = False) -> None:
    """Press Tab until something is focused; it has to be reached within a hundred."""
    for _ in range(100):
        page.keyboard.press("Shift+Tab" if back else "Tab")
        if wanted in focused(page):
            return
    raise AssertionError(f"{wanted} cannot be reached with Tab")


def test_the_keyboard_alone_does_everything(visit: Visit, site: str) -> None:
    page = visit(site)
    keyboard = page.keyboard
    assert focused(page) == "question"
    tab_to(page, "Skip to the question", back=True)
    keyboard.press("Enter")
    tab_to(page, "open-settings")
    keyboard.press("Enter")
    tab_to(page, "setting-confirm_web")
    keyboard.press("Space")
    keyboard.press("Enter")
    assert page.inner_text("#open-settings") == "Settings (1 changed)"
    assert focused(page) == "question"
    keyboard.type(ADA)
    keyboard.press("Enter")
    page.wait_for_selector(f"{LAST}[data-phase=waiting]")
    keyboard.press("Tab")
    keyboard.type(" again")
    keyboard.press("Enter")
    page.wait_for_selector(f"{LAST}[data-phase=answered]", timeout=60_000)
    page.focus("#new")
    tab_to(page, "retrieved →")
    keyboard.press("Enter")
    assert page.locator(f"{LAST} .node[aria-label^='retrieve, done']").is_visible()
    tab_to(page, "Citation 1")
    keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.strip") == "1"
    assert page.locator(f"{LAST} .web q").inner_text().endswith("again")


def test_every_step_is_read_out(visit: Visit, site: str) -> None:
    page = visit(site)
    page.evaluate("""() => {
      window.said = [];
      const status = document.getElementById("status");
      new MutationObserver(() => said.push(status.textContent)).observe(
        status, {childList: true, characterData: true, subtree: true});
    }""")
    ask(page, ADA)
    said = " ".join(page.evaluate("said"))
    for words in ("looking for documents", "searching the web", "writing the answer"):
        assert f"Now {words}" in said
    assert page.evaluate("said.at(-1)").endswith("citations.")


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_screen(visit: Visit, demo: str, width: int) -> None:
    page = visit(demo, viewport={"width": width, "height": 844})
    wider = "() => document.documentElement.scrollWidth > innerWidth"
    assert not page.evaluate(wider)
    ask(page, "What is a knowledge strip?")
    open_basis(page)
    page.click(f"{LAST} .way summary")
    assert not page.evaluate(wider)
    texts = page.locator(f"{LAST} .node").evaluate_all("""(nodes) => nodes.filter((node) => {
      const box = node.querySelector("rect").getBoundingClientRect();
      return [...node.querySelectorAll("text")].some(
        (text) => text.getBoundingClientRect().width > box.width + 1);
    }).length""")
    assert texts == 0
    page.click("#open-settings")
    box = page.locator("#settings").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


def test_the_page_is_painted_at_once(visit: Visit, site: str) -> None:
    times = []
    for _ in range(3):
        page = visit(site)
        painted = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 1e9"
        page.wait_for_function(f"() => ({painted}) < 1e9")
        times.append(page.evaluate(painted))
    assert min(times) < 300 * max(1, os.getloadavg()[0] / (os.cpu_count() or 1))


def test_very_many_passages_hold_nothing_up(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=large")
    ask(page, "How long does the kettle take?")
    page.evaluate("seen.long.length = 0")
    open_basis(page)
    assert max(page.evaluate("seen.long"), default=0) < 3000

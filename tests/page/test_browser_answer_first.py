"""The answer stands first, beneath its question; one line tells the way, and opens the graph."""

from collections.abc import Callable
from typing import Any

import pytest

from crag.graph_registry import OFFERED
from tests.page.asking import ask, phase

pytestmark = pytest.mark.browser
QUESTION = "What is a knowledge strip?"
ADA = "Who wrote the first program?"
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
Visit = Callable[..., Any]

BEYOND = """() => [...document.querySelectorAll("#graph .node")].flatMap((node) => {
  const rim = node.querySelector("rect").getBBox();
  return [...node.querySelectorAll("text")].filter((text) => text.textContent).map((text) => {
    const box = text.getBBox();
    return {told: text.textContent, over: box.width + 6 - rim.width};
  }).filter(({over}) => over > 0);
})"""
"""Texts that are wider than their nodes, or stand closer to the rim than three units."""


def settled(page: Any) -> None:
    """Wait until the page no longer scrolls."""
    page.wait_for_function("""() => new Promise((resolve) => {
      const at = scrollY;
      setTimeout(() => resolve(scrollY === at), 150);
    })""")


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("graph", ["crag", "self_rag"])
def test_the_answer_is_on_screen_without_scrolling(
    visit: Visit, demo: str, screen: dict[str, int], graph: str
) -> None:
    page = visit(f"{demo}&graph={graph}", viewport=screen)
    ask(page, QUESTION)
    settled(page)
    asked, line, text = (
        page.locator(name).first.bounding_box()
        for name in ("#asked", "#way-line", "#answer-body .text")
    )
    assert 0 <= asked["y"] < line["y"] < text["y"]
    assert text["y"] + min(text["height"], 120) <= screen["height"]


def test_one_line_tells_the_way_with_the_verdict(visit: Visit, demo: str) -> None:
    page = visit(demo)
    ask(page, QUESTION)
    line = page.inner_text("#way-line")
    assert line.startswith("10 retrieved → correct → ")
    assert " kept → answered, " in line
    assert line.endswith("s")
    assert page.locator("#way-line [data-action=correct]").inner_text() == "correct"


def test_the_graph_is_open_while_a_run_works_and_folded_when_the_answer_stands(
    visit: Visit, site: str
) -> None:
    page = visit(f"{site}/?graph=hostile")
    assert not page.locator("#graph").is_visible()
    ask(page, ADA, until=".node[data-state=running] >> visible=true")
    page.wait_for_selector(".draft")
    assert not page.locator("#graph").is_visible()
    page.wait_for_selector("#answer[data-phase=done]")
    assert not page.locator("#graph").is_visible()


def test_a_graph_that_somebody_likes_to_see_stays_open(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    page.focus("#way-line")
    page.keyboard.press("Enter")
    assert page.locator("#graph").is_visible()
    ask(page, ADA)
    assert page.locator("#graph").is_visible()
    page.reload()
    page.wait_for_selector(".node")
    page.click("#way-line")
    page.reload()
    page.wait_for_selector(".node", state="attached")
    assert not page.locator("#graph").is_visible()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("graph", OFFERED)
def test_no_text_is_wider_than_its_node(visit: Visit, demo: str, graph: str, width: int) -> None:
    page = visit(f"{demo}&graph={graph}", viewport={"width": width, "height": 900})
    page.click("#way-line")
    assert page.evaluate(BEYOND) == []
    ask(page, "Who painted the ceiling of the Sistine Chapel?")  # The web has nothing to do.
    assert phase(page) in {"done", "abstained", "likely"}
    assert page.evaluate(BEYOND) == []


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_long_self_rag_answer_makes_no_endless_page(
    visit: Visit, demo: str, screen: dict[str, int]
) -> None:
    """Twelve segments with ten candidates each, of which the chosen ones stand first."""
    page = visit(f"{demo}&graph=self_rag", viewport=screen)
    ask(page, QUESTION)
    before = page.evaluate("document.documentElement.scrollHeight")
    critique = {
        "hypothesis": 0, "passage": 0, "title": "Ada", "probabilities": {}, "relevance": 0.9,
        "support": 0.8, "utility": 0.5, "sequence": 0.2, "total": 1.25, "why": "", "flags": [],
        "text": "The first program was written for an engine that nobody had built. " * 4,
    }  # fmt: skip
    critiques = [
        critique | {"segment": segment, "chosen": candidate == 7, "kept": candidate > 5}
        for segment in range(12)
        for candidate in range(10)
    ]
    values = {"critiques": critiques, "choices": [], "passages": [], "approximation": ""}
    page.evaluate(
        "async (values) => (await import('/page/critiques.js')).drawCritiques({values})", values
    )
    assert page.locator("#critiques tbody tr:visible").count() == 12
    assert page.evaluate("document.documentElement.scrollHeight") - before < screen["height"]
    outcomes = page.locator("#critiques .outcome:visible")
    assert outcomes.count() == 12
    for box in (outcomes.first.bounding_box(), outcomes.last.bounding_box()):
        assert 0 <= box["x"] < box["x"] + box["width"] <= screen["width"]


@pytest.mark.parametrize("graph", OFFERED)
def test_every_drawing_fits_below_its_line(visit: Visit, demo: str, graph: str) -> None:
    page = visit(f"{demo}&graph={graph}")
    page.click("#way-line")
    box = page.locator("#graph svg").bounding_box()
    assert box["height"] < 400
    assert box["width"] > box["height"]

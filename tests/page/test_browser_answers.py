"""Questions in a browser: watched, answered, stopped, decided, and what goes wrong."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.page.browser import LAST, ask, open_basis, phase, set_setting, violations
from tests.serve.serving import free_port

pytestmark = pytest.mark.browser
ADA = "Who wrote the first program?"
STRIP = "What is a knowledge strip?"
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}
Visit = Callable[..., Any]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_first_visit_leads_from_a_suggestion_to_the_source(
    visit: Visit, demo: str, size: dict[str, int]
) -> None:
    page = visit(demo, viewport=size)
    assert page.evaluate("document.activeElement.id") == "question"
    page.wait_for_selector("#lead:not(:empty)")
    assert "no model writes them" in page.inner_text("#welcome")
    assert "The web is not searched" in page.inner_text("#welcome")
    examples = page.locator("#examples button").all_inner_texts()
    assert all(question.endswith("?") for question in examples)
    ask(page, STRIP)
    assert phase(page) in {"answered", "likely"}
    sources = page.locator(f"{LAST} .sources li").first
    assert sources.locator(".file").inner_text()
    assert "line" in sources.locator(".opens").first.inner_text()
    heading, answer, form = (
        page.locator(f"{LAST} {part}" if part != "#ask" else part).bounding_box()
        for part in (".asked", ".text", "#ask")
    )
    assert 0 <= heading["y"] < answer["y"] < form["y"]  # In view, above what is asked.
    assert form["y"] + form["height"] <= size["height"] + 1
    for button in ("#new", "#open-settings"):
        box = page.locator(button).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size["width"]
    sources.locator(".opens").first.click()
    page.wait_for_selector("#source .focus")


def test_the_graph_lights_up_while_a_run_works_and_folds_when_words_come(
    visit: Visit, site: str
) -> None:
    page = visit(site)
    ask(page, ADA, until=".node[data-state=done]")
    assert page.locator(f"{LAST} .way").evaluate("way => way.open")
    page.wait_for_selector(f"{LAST} .draft")
    assert "Ada" in page.inner_text(f"{LAST} .draft")
    assert page.inner_text("#status").startswith("Now writing the answer")
    page.wait_for_selector(f"{LAST}[data-phase=answered]")
    assert not page.locator(f"{LAST} .way").evaluate("way => way.open")
    page.click(f"{LAST} .way summary")
    states = {
        str(node.get_attribute("data-node")): node.get_attribute("data-state")
        for node in page.locator(f"{LAST} .node").all()
    }
    assert {states[name] for name in ("retrieve", "grade", "generate")} == {"done"}
    labels = page.locator(f"{LAST} .condition").all_text_contents()
    assert any("correct" in label for label in labels)
    line = page.inner_text(f"{LAST} .way summary")
    assert line.startswith("2 retrieved → graded ")
    assert "→ answered, " in line
    assert page.inner_text("#status").startswith("Answered after")


def test_what_the_answer_rests_on_is_told_without_contradiction(visit: Visit, demo: str) -> None:
    page = visit(demo)
    ask(page, STRIP)
    basis = open_basis(page)
    action = basis.locator(".passages > .hint strong").inner_text().lower()
    assert f"graded {action}" in page.inner_text(f"{LAST} .way summary")
    limits = [float(one.replace("−", "-")) for one in basis.locator(".legend").inner_text().split()
              if one[0] in "+−"]  # fmt: skip
    for bar in basis.locator(".bar").all():
        points = float(bar.locator(".score").inner_text().replace("−", "-"))
        zones = ("incorrect", "ambiguous", "correct")
        assert bar.get_attribute("data-zone") == zones[sum(points >= limit for limit in limits)]
    assert "No document was retrieved" not in basis.inner_text()
    ask(page, "Who painted the ceiling of the Sistine Chapel?")
    assert phase(page) == "not_found"
    told = page.inner_text(f"{LAST} .answer")
    assert "that came closest answers the question" in told
    assert page.locator(f"{LAST} .stance").inner_text() == "not found"


@pytest.mark.parametrize("reply", ["approve", "another query", "refuse"])
def test_a_human_decides_about_the_web(visit: Visit, site: str, reply: str) -> None:
    page = visit(site)
    set_setting(page, confirm_web=True)
    ask(page, ADA, until=f"{LAST}[data-phase=waiting]")
    assert page.evaluate("document.activeElement.tagName") == "H3"
    page.reload()  # What waits is kept, and can be decided later.
    page.wait_for_selector(f"{LAST}[data-phase=waiting]")
    if reply == "refuse":
        page.click("text=Go on without the web")
    else:
        if reply != "approve":
            page.fill(".confirm input", reply)
        page.click("text=Search the web")
    page.wait_for_selector(f"{LAST}[data-phase=answered]", timeout=60_000)
    web = open_basis(page).locator(".web").inner_text()
    if reply == "refuse":
        assert "The web was not searched" in web
    else:
        assert (reply if reply != "approve" else "ada first program") in web
    assert page.locator(".turn").count() == 1


def test_a_question_is_cancelled_and_asked_again_in_its_place(visit: Visit, site: str) -> None:
    page = visit(site)
    ask(page, ADA, until=f"{LAST} .draft")
    page.click("#cancel")
    page.wait_for_selector(f"{LAST}[data-phase=cancelled]")
    assert page.evaluate("document.activeElement.id") == "question"
    assert page.locator(f"{LAST} .node[data-state=cancelled]").count() == 1
    assert "2 retrieved" in page.inner_text(f"{LAST} .way summary")
    page.click("text=Ask again")
    page.wait_for_selector(f"{LAST}[data-phase=answered]", timeout=60_000)
    assert page.locator(".turn").count() == 1
    assert page.locator("#history li").count() == 1


def test_reflection_is_one_table_with_the_chosen_path_first(visit: Visit, demo: str) -> None:
    page = visit(demo.replace("#", "?graph=self_crag#"))
    ask(page, STRIP)
    critiques = open_basis(page).locator(".critiques")
    assert critiques.locator("tbody tr").first.get_attribute("class") == "chosen"
    assert critiques.locator("th").first.inner_text() == "Outcome"
    assert violations(page) == []


def test_settings_are_checked_sent_and_taken_back(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    page.click("#open-settings")
    page.fill("#settings [name=k]", "0")
    page.click("#settings button[type=submit]")
    assert page.locator("#settings").is_visible()
    assert page.locator("#settings [name=k]").evaluate("field => !field.validity.valid")
    page.fill("#settings [name=k]", "1")
    page.click("#settings button[type=submit]")
    assert page.inner_text("#open-settings") == "Settings (1 changed)"
    with page.expect_request("**/api/ask") as sent:
        ask(page, ADA)
    assert sent.value.post_data_json["settings"] == {"k": 1}
    page.click("#open-settings")
    page.click("text=Back to the defaults")
    assert page.inner_text("#open-settings") == "Settings"


def test_a_part_that_fails_is_no_answer_that_was_not_found(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=failing")
    ask(page, ADA)
    told = page.inner_text(f"{LAST} .answer")
    assert "There is no answer: model failed." in told
    assert "127.0.0.1:9" in told
    assert "came closest" not in told
    assert "Model failed" in open_basis(page).locator(".events").inner_text()


def test_what_the_server_refuses_is_told_in_its_words(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=nothing")
    assert "There is no graph “nothing”" in page.inner_text("#notice")
    set_setting(page, max_question_characters="3")
    ask(page, ADA)
    assert phase(page) == "failed"
    assert "the limit is 3" in page.inner_text(f"{LAST} .detail")


def test_a_server_that_is_down_is_told_with_a_way_to_try_again(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    gone = f"http://127.0.0.1:{free_port()}/"
    page.route("**/api/ask", lambda route: route.continue_(url=gone))
    ask(page, ADA)
    assert phase(page) == "failed"
    assert "Is “crag serve” still running?" in page.inner_text("#notice")
    assert page.inner_text("#status").endswith("Is “crag serve” still running?")
    page.unroute("**/api/ask")
    page.click("#notice button")
    page.click("text=Ask again")
    page.wait_for_selector(f"{LAST}[data-phase=answered]", timeout=60_000)
    assert page.locator("#notice").is_hidden()

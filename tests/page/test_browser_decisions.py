"""A run that waits for a decision, reached again in every way: the decision counts for that run."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.page.asking import ENDED, ask, set_setting

pytestmark = pytest.mark.browser
ADA, THEN = "Who wrote the first program?", "And who was the first after her?"
WAITING, QUERY = "#confirm:not([hidden])", "ada first program"
Visit = Callable[..., Any]


def reload(page: Any) -> Any:
    page.wait_for_timeout(2000)  # The clock of the new page begins later.
    page.reload()
    page.wait_for_selector(".node", state="attached")
    page.click("#history .entry")
    return page


def follow_up(page: Any) -> Any:
    page.click("#changed .chip")
    ask(page, THEN, until=f"#answer[data-phase=done] #asked >> text={THEN}")
    page.click("#earlier .asked")
    return page


def open_during_another_run(page: Any) -> Any:
    page.click("#changed .chip")
    page.click("#new")
    ask(page, THEN, until=".draft")
    page.locator("#history .entry", has_text=ADA).click()
    return page


def open_in_another_tab(page: Any) -> Any:
    other = page.context.new_page()
    other.goto(page.url)
    other.click("#history .entry")
    return other


@pytest.mark.parametrize(
    "reached", [reload, follow_up, open_during_another_run, open_in_another_tab]
)
@pytest.mark.parametrize("approves", [True, False])
def test_the_decision_counts_for_the_run_that_waits(
    visit: Visit, site: str, reached: Callable[[Any], Any], *, approves: bool
) -> None:
    page = visit(f"{site}/?graph=hostile")
    set_setting(page, confirm_web=True)
    ask(page, ADA, until=WAITING)
    asking = reached(page)
    asking.wait_for_selector(WAITING)
    assert asking.input_value("#query") == QUERY
    asking.click(f"#confirm button[type={'submit' if approves else 'button'}]")
    asking.wait_for_selector(f"#answer[data-phase=done] #asked >> text={ADA}")
    web = "1 found on the web → 4 kept" if approves else "3 kept"
    way = rf"2 retrieved → ambiguous → {web} → answered, \d+\.\d s"
    assert re.fullmatch(way, asking.inner_text("#way-line"))
    assert "Ada did it first" in asking.inner_text("#answer .text")


def test_a_decision_of_another_tab_is_shown(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=hostile")
    set_setting(page, confirm_web=True)
    ask(page, ADA, until=WAITING)
    other = open_in_another_tab(page)
    other.wait_for_selector(WAITING)
    other.click("#confirm button[type=button]")
    other.wait_for_selector(ENDED)
    page.wait_for_selector("#answer[data-phase=done]")
    assert page.locator("#confirm").is_hidden()
    assert page.inner_text("#answer .text") == other.inner_text("#answer .text")

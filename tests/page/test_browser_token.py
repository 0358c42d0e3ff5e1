"""The token in the printed address: what the page does with it, and without it."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.browser
Visit = Callable[..., Any]


def test_it_is_taken_out_of_the_address_and_kept_for_other_tabs(visit: Visit, demo: str) -> None:
    page = visit(f"{demo}&question=Why%3F")
    base, _, token = demo.partition("?token=")
    assert page.url == f"{base}?question=Why%3F"
    assert page.input_value("#question") == "Why?"
    assert page.context.cookies() == []
    page.reload()
    page.wait_for_selector(".node", state="attached")
    sent: list[Any] = []
    other = page.context.new_page()
    other.on("request", lambda request: sent.append((request.url, request.headers)))
    other.goto(base)
    other.wait_for_selector(".node", state="attached")
    assert {headers.get("x-api-key") for _, headers in sent} == {None, token}
    assert not [url for url, _ in sent if token in url]


@pytest.mark.parametrize("query", ["", "?token=of-an-earlier-start"])
def test_without_it_the_page_asks_for_it(browser: Any, demo: str, query: str) -> None:
    page = browser.new_page()
    page.goto(demo.partition("?")[0] + query)
    page.wait_for_selector("#token")
    assert "open the address that crag serve printed" in page.inner_text("#notice")
    assert page.evaluate("document.activeElement.id") == "token"
    assert page.locator(".node").count() == 0
    assert "etching" not in page.inner_text("main")
    page.keyboard.type("no token")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.querySelector('#token')?.value === ''")
    page.fill("#token", demo)  # The whole address will do.
    page.keyboard.press("Enter")
    page.wait_for_selector(".node", state="attached")
    assert page.locator("#notice").is_hidden()
    page.close()

"""Conversations: kept by the server, gone on with, edited, shared by tabs, and deleted."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.page.browser import LAST, ask, phase

pytestmark = pytest.mark.browser
ADA, NEXT, OTHER = "Who wrote the first program?", "And when?", "Who was Babbage?"
Visit = Callable[..., Any]


def questions(page: Any) -> list[str]:
    """Return the questions of the conversation that is shown."""
    asked = page.locator(".turn .asked").all()
    return [str(one.evaluate("one => one.firstChild.textContent")) for one in asked]


def kept(site: str) -> list[dict[str, Any]]:
    """Return the turns of the only conversation that the server has."""
    (thread,) = httpx.get(f"{site}/api/threads").json()
    found: list[dict[str, Any]] = httpx.get(f"{site}/api/threads/{thread['thread']}").json()
    return found


def test_a_follow_up_goes_on_and_all_turns_stay_readable_with_their_citations(
    visit: Visit, site: str
) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    assert page.inner_text("#asks") == "Your follow-up question"
    ask(page, NEXT)
    assert questions(page) == [ADA, NEXT]
    assert page.locator(".turn").first.locator(".text .cite").count() == 1
    assert page.inner_text(f"{LAST} .understood") == "Understood as: When did Ada write it?"
    page.locator(".turn").first.locator(".text .cite").click()
    assert page.locator(".turn").first.locator("[data-strip='1']").is_visible()


def test_a_conversation_has_an_address_and_survives_a_reload(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    address = page.url
    assert "?thread=" in address
    page.click("#new")
    assert "thread" not in page.url
    assert page.locator("#welcome").is_visible()
    ask(page, OTHER)
    page.go_back()
    page.go_back()
    page.wait_for_selector(f".turn:first-child .asked:has-text('{ADA}')")
    again = visit(address, ready=".turn")  # In another browser.
    assert questions(again) == [ADA]
    assert phase(again) == "answered"
    assert again.locator(".text .cite").count() == 1
    assert again.locator("#graphs").input_value() == "chat"
    ask(again, NEXT)
    assert questions(again) == [ADA, NEXT]
    assert "When did Ada write it?" in again.inner_text(LAST)


def test_a_question_is_edited_without_losing_what_was_answered(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    for question in (ADA, NEXT, OTHER):
        ask(page, question)
    page.locator(".turn").nth(1).locator("text=Edit the question").click()
    assert page.input_value("#question") == NEXT
    assert page.inner_text("#asks") == "Edit the question"
    ask(page, "And where?")
    assert questions(page) == [ADA, "And where?"]
    page.reload()
    page.wait_for_selector(".turn")
    assert questions(page) == [ADA, "And where?"]
    page.locator(".turn").first.locator("text=Edit the question").click()
    ask(page, OTHER)
    assert questions(page) == [OTHER]
    assert page.locator("#history li").count() == 2


def test_of_two_tabs_on_one_conversation_the_newer_question_wins(visit: Visit, site: str) -> None:
    page = visit(site)
    ask(page, ADA)
    tab = page.context.new_page()
    tab.goto(page.url)
    tab.wait_for_selector(".turn")
    ask(page, NEXT, until=f"{LAST} .draft")
    ask(tab, OTHER)
    page.bring_to_front()
    page.wait_for_selector(f"{LAST}[data-phase=cancelled]")
    assert "a newer question on it took its place" in page.inner_text(LAST)
    assert phase(tab) == "not_found"


def test_a_conversation_is_deleted_when_confirmed_while_it_runs_too(
    visit: Visit, site: str
) -> None:
    page = visit(site)
    ask(page, ADA, until=f"{LAST} .draft")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.click("#history .remove")
    assert page.locator("#history li").count() == 1
    page.once("dialog", lambda dialog: dialog.accept())
    page.click("#history .remove")
    page.wait_for_selector("#welcome:not([hidden])")
    page.wait_for_selector("#no-history:not([hidden])")
    assert httpx.get(f"{site}/api/threads").json() == []


def test_a_conversation_that_the_server_lost_is_begun_anew(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    for thread in httpx.get(f"{site}/api/threads").json():
        httpx.delete(f"{site}/api/threads/{thread['thread']}")
    ask(page, NEXT)
    assert "no longer has this conversation" in page.inner_text(f"{LAST} .detail")
    page.click("text=Ask again")
    page.wait_for_selector(f"{LAST}[data-phase=answered]", timeout=60_000)
    assert len(kept(site)) == 1


def cut(body: bytes, after: str) -> bytes:
    """Cut a stream of events off after the first one of a kind."""
    text = body.decode()
    return text[: text.index(f"event: {after}")].encode()


def test_what_a_killed_process_was_answering_is_asked_again_once(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)
    thread = page.url.rpartition("=")[2]
    broken = f"event: thread\ndata: {thread}\n\nevent: tasks\ndata: "
    page.route(
        "**/api/ask",
        lambda route: route.fulfill(content_type="text/event-stream", body=broken),
        times=1,
    )
    ask(page, NEXT)
    assert phase(page) == "answered"
    assert [turn["values"]["asked"] for turn in kept(site)] == [NEXT, ADA]
    assert page.locator(".turn").count() == 2


def test_an_answer_that_was_kept_before_the_connection_broke_is_not_asked_for_again(
    visit: Visit, site: str
) -> None:
    page = visit(f"{site}/?graph=chat")
    ask(page, ADA)

    def breaks(route: Any) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=cut(response.body(), "end"))

    page.route("**/api/ask", breaks, times=1)
    page.route("**/api/threads/*", lambda route: route.fulfill(status=502), times=1)
    ask(page, NEXT)
    assert phase(page) == "answered"
    assert "When did Ada write it?" in page.inner_text(LAST)
    assert len(kept(site)) == 2


def test_a_hundred_questions_in_a_row_leave_no_memory_behind(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")

    def used() -> tuple[float, float]:
        devtools.send("HeapProfiler.collectGarbage")
        told = devtools.send("Performance.getMetrics")["metrics"]
        metrics = {one["name"]: one["value"] for one in told}
        return metrics["JSHeapUsedSize"], metrics["Nodes"]

    def ask_many(number: int) -> None:
        for at in range(number):
            page.click("#new")
            ask(page, f"{ADA} {at}")
        for thread in httpx.get(f"{site}/api/threads").json():
            httpx.delete(f"{site}/api/threads/{thread['thread']}")
        page.click("#new")
        ask(page, ADA)

    ask_many(10)
    heap, nodes = used()
    ask_many(90)
    later_heap, later_nodes = used()
    assert later_heap - heap < 2_000_000
    assert later_nodes - nodes < 1000

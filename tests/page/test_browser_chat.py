"""Conversations: follow-ups, earlier turns, editing, beginning anew, and reloading."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.page.asking import ask

pytestmark = pytest.mark.browser
ADA, THEN, WHO = "Who wrote the first program?", "And when?", "Who built the engine?"
Visit = Callable[..., Any]


def turn(page: Any, question: str) -> None:
    """Ask, and wait until that very question is answered."""
    ask(page, question, until=f"#answer[data-phase=done] #asked >> text={question}")


def turns(page: Any, place: str) -> list[str]:
    return page.locator(f"#{place} .turn .asked").all_inner_texts()


def test_a_follow_up_goes_on_with_the_thread(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    assert page.inner_text("#asks") == "Your question"
    turn(page, ADA)
    assert page.locator("[data-node=contextualize][data-state=skipped]").count() == 1
    assert page.input_value("#question") == ""
    assert page.inner_text("#asks") == "Your follow-up question"
    turn(page, THEN)
    assert page.locator("[data-node=contextualize][data-state=done]").count() == 1
    assert "Understood as: When did Ada write it?" in page.inner_text("#asked")
    assert turns(page, "earlier") == [ADA]
    assert ADA in page.inner_text("#earlier .turn p")  # The answer of the fake repeats it.
    assert page.locator("#history .entry").count() == 1
    assert "2 questions" in page.inner_text("#history")
    page.click("#earlier .asked")
    page.wait_for_selector(f"#asked >> text={ADA}")
    assert turns(page, "later") == [THEN]
    assert "Understood as" not in page.inner_text("#asked")


def test_a_conversation_survives_a_reload_and_goes_on(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    turn(page, ADA)
    turn(page, THEN)
    page.reload()
    page.wait_for_selector(".node", state="attached")
    page.click("#history .entry")
    page.wait_for_selector("#asked >> text=Understood as")
    assert turns(page, "earlier") == [ADA]
    page.click("#earlier .asked")  # An earlier state of the thread, which has gone on since.
    page.wait_for_selector(f"#asked >> text={ADA}")
    assert ADA in page.inner_text("#answer .text")
    assert page.locator("#documents .documents > li").count() == 2
    turn(page, "And where?")
    assert turns(page, "earlier") == [ADA, THEN]
    assert page.locator("[data-node=contextualize][data-state=done]").count() == 1


def test_a_question_that_is_edited_forgets_what_came_after(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    turn(page, ADA)
    turn(page, THEN)
    page.click("#answer-body >> text=Edit the question")
    assert page.input_value("#question") == THEN
    assert page.inner_text("#asks") == "Edit the question"
    page.click("#leave")
    assert (page.input_value("#question"), page.inner_text("#asks")) == (
        "",
        "Your follow-up question",
    )
    page.click("#answer-body >> text=Edit the question")
    turn(page, "And where?")
    assert turns(page, "earlier") == [ADA]
    page.click("#earlier .asked")
    page.click("#answer-body >> text=Edit the question")
    turn(page, WHO)
    assert page.locator("[data-node=contextualize][data-state=skipped]").count() == 1
    assert turns(page, "earlier") == []
    # Nothing that was answered is lost: each is a conversation of its own.
    titles = page.locator("#history .entry .asked").all_inner_texts()
    assert titles == [WHO, ADA, ADA]


def test_a_new_conversation_knows_nothing_of_the_last(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    assert page.locator("#new").is_hidden()
    turn(page, ADA)
    page.click("#new")
    assert page.inner_text("#asks") == "Your question"
    assert page.locator("#answer[data-phase=empty]").count() == 1
    assert page.locator("#documents").is_hidden()
    assert page.evaluate("document.activeElement.id") == "question"
    turn(page, THEN)
    assert page.locator("[data-node=contextualize][data-state=skipped]").count() == 1
    assert page.locator("#history .entry").count() == 2


def test_a_question_that_was_cancelled_is_asked_again_in_its_place(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    ask(page, ADA)
    ask(page, THEN, until=".draft")
    page.click("#cancel")
    page.wait_for_selector("#answer[data-phase=cancelled]")
    page.click("#answer button >> text=Ask again")
    page.wait_for_selector("#answer[data-phase=done]")
    assert turns(page, "earlier") == [ADA]
    assert page.locator("#history .entry").count() == 1


def test_every_tab_shows_the_conversations_and_goes_on_with_them(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    turn(page, ADA)
    other = page.context.new_page()
    other.goto(f"{site}/?graph=chat")
    entry = other.locator("#history .entry").first
    entry.wait_for()
    assert (entry.locator(".asked").inner_text(), "answered" in entry.inner_text()) == (ADA, True)
    entry.click()
    other.wait_for_selector(f"#answer[data-phase=done] #asked >> text={ADA}")
    assert other.locator("[data-node=retrieve][data-state=done]").count() == 1
    assert other.inner_text("#answer .text") == page.inner_text("#answer .text")
    turn(other, THEN)
    page.wait_for_selector("#later .turn")  # Without being asked.
    assert turns(page, "later") == [THEN]
    assert page.locator("#history .entry").first.inner_text().count("2 questions") == 1


def test_another_browser_shows_them(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    turn(page, "Which browser shows it?")
    other = visit(f"{site}/?graph=plain")
    other.locator("#history .entry", has_text="Which browser shows it?").click()
    other.wait_for_selector("#answer[data-phase=done]")
    assert other.inner_text("#answer .text") == page.inner_text("#answer .text")


def test_a_run_of_another_tab_is_shown_when_it_ends(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    other = page.context.new_page()
    other.goto(f"{site}/?graph=plain")
    other.wait_for_selector(".node", state="attached")
    ask(page, "Which run is watched?", until=".draft")
    other.locator("#history .entry", has_text="running").click()
    other.wait_for_selector("#answer[data-phase=running]")
    other.wait_for_selector("#answer[data-phase=done]")
    page.wait_for_selector("#answer[data-phase=done]")
    assert other.inner_text("#answer .text") == page.inner_text("#answer .text")


def test_a_run_whose_tab_was_closed_is_not_shown_as_running(visit: Visit, site: str) -> None:
    other = visit(f"{site}/?graph=plain")
    page = visit(f"{site}/?graph=plain")
    ask(page, "Which tab was closed?", until=".draft")
    page.close()
    other.reload()
    entry = other.locator("#history .entry", has_text="Which tab was closed?")
    entry.click()
    other.wait_for_selector("#answer[data-phase=cancelled]")
    assert "cancelled" in entry.inner_text()


def test_a_conversation_is_forgotten_at_the_second_click(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    turn(page, "What is forgotten?")
    page.click("#history >> text=Forget")
    assert page.locator("#history .entry", has_text="What is forgotten?").count() == 1
    page.click("#history >> text=Forget it for good?")
    page.wait_for_selector("#answer[data-phase=empty]")
    assert page.locator("#history .entry", has_text="What is forgotten?").count() == 0
    page.reload()
    page.wait_for_selector("#history .entry, #no-history:not([hidden])")
    assert page.locator("#history .entry", has_text="What is forgotten?").count() == 0


def test_a_conversation_is_forgotten_while_it_runs(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    ask(page, "What is forgotten?", until=".draft")
    page.click("#history >> text=Forget")
    page.click("#history >> text=Forget it for good?")
    page.wait_for_selector("#answer[data-phase=empty]")
    page.wait_for_selector("#cancel", state="hidden")
    assert page.locator("#history .entry").count() == 0
    turn(page, ADA)
    assert page.locator("#history .entry .asked").all_inner_texts() == [ADA]
    assert len(httpx.post(f"{site}/threads/search", json={}).json()) == 1


def test_what_another_tab_forgot_is_not_gone_on_with(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    turn(page, ADA)
    other = page.context.new_page()
    other.goto(page.url)
    other.click("#history .entry")
    other.click("#history >> text=Forget")
    other.click("#history >> text=Forget it for good?")
    page.wait_for_selector("#asks >> text=Your question")
    turn(page, WHO)
    assert turns(page, "earlier") == []
    assert page.locator("#history .entry .asked").all_inner_texts() == [WHO]


def test_a_conversation_that_the_server_lost_is_begun_anew(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=chat")
    turn(page, ADA)
    (thread,) = httpx.post(f"{site}/threads/search", json={}).json()
    httpx.delete(f"{site}/threads/{thread['thread_id']}")  # As a server that was started anew.
    ask(page, WHO, until="#answer[data-phase=failed]")
    assert "The server no longer has this conversation." in page.inner_text("#answer-body")
    page.click("text=Ask again")
    page.wait_for_selector("#answer[data-phase=done]")
    assert turns(page, "earlier") == []
    assert page.locator("#history .entry .asked").all_inner_texts() == [WHO]

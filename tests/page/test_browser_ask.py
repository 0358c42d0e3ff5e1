"""Asking and watching, in a real browser against real servers."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from crag.answering.outcome import NOT_FOUND
from tests.page.asking import (
    ask,
    changes,
    open_everything,
    phase,
    set_setting,
    watch_nodes,
)

pytestmark = pytest.mark.browser
QUESTION = "What is a knowledge strip?"
ADA = "Who wrote the first program?"
Visit = Callable[..., Any]


def test_the_demo_corpus_is_asked_and_nodes_light_up_in_order(visit: Visit, demo: str) -> None:
    page = visit(demo)
    watch_nodes(page)
    ask(page, QUESTION)
    assert phase(page) in {"done", "likely"}
    lit = changes(page)
    nodes = ("retrieve", "grade", "refine", "generate")
    assert [change for change in lit if change in {f"{n} done" for n in nodes}] == [
        f"{node} done" for node in nodes
    ]
    # What takes no time may be drawn only once.
    assert lit.index("grade running") < lit.index("grade done")
    assert "web:search skipped" in lit
    assert "a small piece of text" in page.inner_text("#answer .text")
    assert page.locator("#documents .bar").count() == 10
    assert page.locator("#documents .limit").count() == 20
    assert "passages kept" in page.inner_text("#documents")


def test_a_citation_shows_its_strip_and_leads_back(visit: Visit, demo: str) -> None:
    page = visit(demo)
    ask(page, QUESTION)
    cite = page.locator("#answer .text .cite").first
    number = cite.get_attribute("data-cite")
    cite.click()
    strip = page.locator(f"#strip-{number}")
    assert strip.evaluate("strip => strip === document.activeElement")
    page.wait_for_function(
        "() => { const {top, bottom} = document.activeElement.getBoundingClientRect();"
        " return top >= 0 && bottom <= innerHeight; }"
    )
    assert "A knowledge strip is a small piece of text" in strip.inner_text()
    assert "kept" in strip.inner_text()
    page.click(f"#strip-{number} .back")
    assert page.evaluate("document.activeElement.dataset.cite") == number


def test_self_rag_shows_what_the_model_thought(visit: Visit, demo: str) -> None:
    page = visit(f"{demo}&graph=self_rag")
    ask(page, QUESTION)
    assert phase(page) in {"done", "abstained"}
    assert page.inner_text("#critiques .approximation").startswith("approximation: ")
    rows = page.locator("#critiques tbody tr")
    assert rows.count() == 10
    assert page.locator("#critiques tr.chosen").count() >= 1
    assert page.locator("[data-node='reflect:finish_reflection'][data-state=done]").count() == 1
    page.click("#answer .text .cite")
    assert page.evaluate("document.activeElement.id") == "strip-1"


def test_what_documents_web_and_model_say_stays_text(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=hostile")
    ask(page, ADA)
    open_everything(page)
    shown = page.inner_text("main")
    for text in ("<script>document.title = 'owned'</script>", "<img src=x", "<u>Programmers</u>",
                 "<s>first</s>", "<b>surely</b>", "Ada <i>Lovelace</i>"):  # fmt: skip
        assert text in shown
    assert page.title() == "crag: ask and watch"
    assert page.locator("main :is(script, img, b, i, u, s)").count() == 0
    links = page.locator("main a[target]")
    assert links.count() >= 2
    for link in links.all():
        assert link.get_attribute("href").startswith("https://example.org/")
        assert "noopener" in link.get_attribute("rel")


@pytest.mark.parametrize(
    ("question", "ended", "start"),
    [
        ("When was the harbour of Quellmoor dug?", "done", "“The harbour of Quellmoor was dug in"),
        ("How deep is the harbour of Quellmoor?", "likely", "“The harbour of Quellmoor"),
        ("Who won the world cup in 1990?", "abstained", NOT_FOUND),
    ],
)
def test_the_three_outcomes_are_told_apart(
    visit: Visit, site: str, question: str, ended: str, start: str
) -> None:
    page = visit(f"{site}/?graph=harbour")
    ask(page, question)
    assert phase(page) == ended
    answer = page.inner_text("#answer")
    assert page.inner_text("#answer .text").startswith(start)
    assert ("dug in 1731" in answer) == (start != NOT_FOUND)
    assert page.locator("#answer .text .cite").count() == (start != NOT_FOUND)


def test_web_hits_pages_and_strips_are_shown(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=hostile")
    ask(page, ADA)
    web = page.inner_text("#web")
    assert "Searched for: ada first program" in web.replace("“", "").replace("”", "")
    assert "page read · 1 paragraph" in web
    assert "1 of 1 passage kept" in web
    assert "Some hits could not be used" in page.inner_text("#events")
    page.click("#answer .text .cite >> text=3")
    assert "She was the <s>first</s> programmer" in page.inner_text("#strip-3")


def test_words_stream_in_before_the_answer_is_done(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    ask(page, ADA, until=".draft")
    assert phase(page) == "running"
    first = page.inner_text(".draft")
    longer = "before => document.querySelector('.draft')?.textContent.length > before"
    page.wait_for_function(longer, arg=len(first))
    page.wait_for_selector("#answer[data-phase=done]")


@pytest.mark.parametrize("edited", [None, "other words"])
def test_a_human_lets_the_web_be_searched(visit: Visit, site: str, edited: str | None) -> None:
    page = visit(f"{site}/?graph=hostile")
    set_setting(page, confirm_web=True)
    ask(page, ADA, until="#confirm:not([hidden])")
    assert phase(page) == "waiting"
    assert page.evaluate("document.activeElement.id") == "confirm-title"
    assert "the upper threshold is 0.50" in page.inner_text("#confirm")
    if edited:
        page.fill("#query", edited)
    page.press("#query", "Enter")
    page.wait_for_selector("#answer[data-phase=done]")
    assert (edited or "ada first program") in page.inner_text("#web .query")
    refined = page.locator("[data-node=refine]")
    assert refined.get_attribute("data-state") == "done"


def test_a_human_refuses_the_web(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=hostile")
    set_setting(page, confirm_web=True)
    ask(page, ADA, until="#confirm:not([hidden])")
    page.click("#confirm button[type=button]")
    page.wait_for_selector("#answer[data-phase=done]")
    assert "The web was not searched: the web search was refused." in page.inner_text("#web")
    assert "The web search was refused" in page.inner_text("#events")


def test_a_cancelled_run_keeps_what_it_had_and_ends_on_the_server(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    ask(page, ADA, until=".draft")
    page.click("#cancel")
    page.wait_for_selector("#answer[data-phase=cancelled]")
    assert page.locator("#documents .documents > li").count() == 2
    assert page.locator("[data-node=generate][data-state=cancelled]").count() == 1
    assert page.evaluate("document.activeElement.id") == "question"
    assert until_ended(site, thread_of(site)) != "success"
    page.click("#answer button")
    page.wait_for_selector("#answer[data-phase=done]")


def test_a_browser_that_goes_away_ends_its_run(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    ask(page, ADA, until=".draft")
    thread = thread_of(site)
    page.close()
    assert until_ended(site, thread) != "success"


def thread_of(site: str) -> str:
    """Return the thread that was made last."""
    wanted = {"limit": 1, "sort_by": "created_at", "sort_order": "desc"}
    (thread,) = httpx.post(f"{site}/threads/search", json=wanted).json()
    return str(thread["thread_id"])


def until_ended(site: str, thread: str) -> str:
    """Wait until the last run of a thread has ended, and return how."""
    for _ in range(300):
        status = httpx.get(f"{site}/threads/{thread}/runs").json()[0]["status"]
        if status not in {"pending", "running"}:
            return str(status)
        time.sleep(0.2)
    raise AssertionError("the run goes on without anybody to read it")


def test_the_session_is_kept_and_each_run_can_be_seen_again(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    ask(page, "First question?")
    page.click("#graphs >> text=many")
    ask(page, "Second question?", until="#answer .asked >> text=Second question?")
    page.wait_for_selector("#answer[data-phase=done]")
    entries = page.locator("#history .entry")
    assert entries.count() == 2
    entries.nth(1).click()
    page.wait_for_selector("#answer .asked >> text=First question?")
    assert page.locator("#graphs input:checked").get_attribute("value") == "plain"
    page.reload()
    page.wait_for_selector(".node", state="attached")
    page.locator("#history .entry >> text=Second question?").click()
    page.wait_for_selector("#answer[data-phase=done]")
    assert "It is so" in page.inner_text("#answer .text")
    assert page.locator("#documents .documents > li").count() == 10


def test_the_trace_that_is_downloaded_is_that_of_the_server(
    visit: Visit, site: str, tmp_path: Path
) -> None:
    page = visit(f"{site}/?graph=hostile")
    ask(page, ADA)
    with page.expect_download() as download:
        page.click("#numbers > button")
    download.value.save_as(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text("utf-8"))
    kept = httpx.get(f"{site}/threads/{trace['thread']}/state").json()["values"]
    assert {name: value for name, value in kept.items() if name != "messages"} == {
        name: value for name, value in trace["state"].items() if name != "messages"
    }
    assert (trace["question"], trace["graph"], trace["phase"]) == (ADA, "hostile", "done")
    assert {step["node"] for step in trace["steps"]} >= {"retrieve", "web:search", "generate"}


def test_critiques_of_any_kind_are_drawn_as_text(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    critique = {
        "segment": 0, "hypothesis": 0, "passage": 0, "title": "Ada", "kept": True, "chosen": False,
        "text": "<img src=x>[Relevant]", "probabilities": {}, "relevance": 0.9, "support": None,
        "utility": -0.5, "sequence": 0.2, "total": 1.25, "why": "<b>why</b>",
        "flags": ["no_support_token"],
    }  # fmt: skip
    without = critique | {"passage": None, "relevance": None, "kept": False, "flags": []}
    choice = {"segment": 0, "action": "no_retrieve", "ratio": None, "why": "never", "flags": []}
    values = {
        "critiques": [critique, without],
        "choices": [choice],
        "passages": [{"title": "<i>Ada</i>", "text": "She did.", "label": "document"}],
        "approximation": "",
    }
    page.evaluate(
        "async (values) => (await import('/page/critiques.js')).drawCritiques({values})", values
    )
    shown = page.inner_text("#critiques")
    for text in ("<i>Ada</i>", "<img src=x>", "<b>why</b>", "Segment 1: no retrieve",
                 "kept in the beam", "dropped", "no support token", "1.25"):  # fmt: skip
        assert text in shown
    assert "approximation" not in shown
    assert page.locator("#critiques :is(img, i, b)").count() == 0

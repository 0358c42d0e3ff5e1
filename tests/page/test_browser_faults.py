"""What goes wrong has an answer in the page."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.page.asking import ask, phase, set_setting
from tests.page.serving import GRAPHS, serving

pytestmark = pytest.mark.browser
Visit = Callable[..., Any]


def test_an_unknown_graph_is_named_with_those_there_are(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=nothing&question=Why%3F")
    names = "chat, failing, harbour, hostile, large, many, plain"
    told = f"no graph “nothing” on this server; it has {names}"
    assert told in page.inner_text("#notice")
    assert page.input_value("#question") == "Why?"
    ask(page, "Why?")
    assert phase(page) == "done"


def test_a_setting_outside_its_bounds_is_refused_in_the_form(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    set_setting(page, k="0", upper="-1", lower="1")
    problem = page.inner_text("#settings .problem")
    assert "has to be a whole number, 1 to 1,000; “0” is not" in problem
    assert "lower cannot be above upper" in problem
    assert page.evaluate("document.activeElement.name") == "k"
    assert page.get_attribute("#settings [name=k]", "aria-invalid") == "true"
    page.click("#settings button >> text=Leave as they were")
    assert page.locator("#changed li").count() == 0


def test_a_setting_that_only_the_server_refuses_is_told_in_a_sentence(
    visit: Visit, site: str
) -> None:
    page = visit(f"{site}/?graph=plain")
    set_setting(page, lower="0.9", task="popqa")
    ask(page, "Why?")
    assert phase(page) == "failed"
    assert "lower (0.9) must not be above upper (0.592)" in page.inner_text("#answer .detail")
    assert "must not be above upper" in page.inner_text("#status")


def test_what_the_graph_refuses_is_told_with_its_fix(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=plain")
    set_setting(page, max_question_characters="3")
    ask(page, "Who wrote it?")
    assert phase(page) == "failed"
    assert "13 characters" in page.inner_text("#answer .detail")
    assert page.locator("[data-node=open_run][data-state=failed]").count() == 1


def test_no_documents_and_no_answer_are_told_apart_from_failures(visit: Visit, demo: str) -> None:
    page = visit(demo)
    ask(page, "Who painted the ceiling of the Sistine Chapel?")
    assert phase(page) == "abstained"
    nothing, action = page.locator("#answer .hint").all_inner_texts()
    assert nothing.startswith("None of the 10 passages that came closest answers the question.")
    assert nothing.endswith(" No web search is connected.")
    assert action == "In the papers' words, the action is incorrect."
    assert "The web cannot be searched" in page.inner_text("#events")
    assert "no answer" in page.inner_text("#history")
    page.locator("#documents summary").first.click()
    page.wait_for_selector("#documents >> text=set aside · the action is incorrect")


def test_a_server_that_ends_is_noticed_midway_and_before(visit: Visit, tmp_path: Path) -> None:
    with serving({"plain": f"{GRAPHS}:plain"}, tmp_path) as (url, server):
        page = visit(f"{url}/?graph=plain")
        ask(page, "Who wrote the first program?", until=".draft")
        server.kill()
        page.wait_for_selector("#answer[data-phase=broken]")
        assert "The connection broke" in page.inner_text("#answer")
        page.click("#answer button")
        page.wait_for_selector("#answer[data-phase=failed]")
        assert "Is “crag serve” still running?" in page.inner_text("#answer")
        assert "The server does not answer" in page.inner_text("#notice")
        page.click("#notice button")
        page.wait_for_selector("#notice:not([hidden])")


def test_a_trace_of_five_megabytes_is_shown_and_kept(
    visit: Visit, site: str, tmp_path: Path
) -> None:
    page = visit(f"{site}/?graph=large")
    ask(page, "How long does the kettle take?")
    assert phase(page) == "done"
    page.locator("#documents summary").nth(1).click()
    page.locator("#documents li:nth-child(2) .strip").first.wait_for()
    assert page.locator("#documents li:nth-child(2) .strip").count() == 100
    page.click("#documents li:nth-child(2) .more button")
    assert page.locator("#documents li:nth-child(2) .strip").count() > 100
    with page.expect_download() as download:
        page.click("#numbers > button")
    download.value.save_as(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").stat().st_size > 5_000_000

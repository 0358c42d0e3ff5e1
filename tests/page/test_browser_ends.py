"""How a run ended is what the server says of it, whatever the stream looked like."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.page.asking import ask, phase
from tests.page.serving import GRAPHS, serving

pytestmark = pytest.mark.browser
ADA = "Who wrote the first program?"
Visit = Callable[..., Any]

_OPENED = {"answer": "", "abstained": False, "citations": [], "documents": [], "events": []}
_STREAM = [
    ("metadata", {"run_id": "0190", "attempt": 1}),
    ("tasks", {"id": "1", "name": "retrieve", "input": {}}),
    (
        "tasks",
        {"id": "1", "name": "retrieve", "result": _OPENED, "error": None, "interrupts": []},
    ),
]
"""The first node of a run, and nothing more: what a page reads from a server that stops then."""


def cut_off(page: Any, status: str | None) -> None:
    """Let the stream end after the first node, and the server say `status`, or nothing at all."""
    body = "".join(f"event: {event}\ndata: {json.dumps(data)}\n\n" for event, data in _STREAM)
    page.route(
        "**/runs/stream",
        lambda route: route.fulfill(content_type="text/event-stream", body=body),
    )
    page.route(
        "**/threads/*/runs/0190",
        lambda route: route.fulfill(json={"status": status}) if status else route.abort(),
    )


@pytest.mark.parametrize(
    ("status", "ended", "told"),
    [
        ("error", "failed", "The run failed"),
        ("timeout", "failed", "took longer than the server allows"),
        ("interrupted", "cancelled", "cancelled"),
        ("running", "broken", "The connection broke"),
        (None, "broken", "The connection broke"),
    ],
)
def test_a_stream_that_stops_midway_is_no_answer(
    visit: Visit, site: str, status: str | None, ended: str, told: str
) -> None:
    page = visit(f"{site}/?graph=plain")
    cut_off(page, status)
    ask(page, ADA)
    assert phase(page) == ended
    assert told in page.inner_text("#answer")
    assert "nswered" not in page.inner_text("#status")
    assert page.locator("#history .entry").get_attribute("data-phase") == ended


def test_a_run_that_ended_after_the_stream_broke_is_shown_whole(visit: Visit, site: str) -> None:
    page = visit(f"{site}/?graph=many")

    def cut(route: Any) -> None:
        whole = route.fetch()
        route.fulfill(response=whole, body=whole.text()[:2000])

    page.route("**/runs/stream", cut)
    ask(page, "How long does the kettle take?")
    assert phase(page) == "done"
    assert "It is so" in page.inner_text("#answer .text")
    assert page.locator("#documents .documents > li").count() == 10


def test_a_server_that_is_stopped_in_order_has_not_answered(visit: Visit, tmp_path: Path) -> None:
    with serving({"plain": f"{GRAPHS}:plain"}, tmp_path) as (url, server):
        page = visit(f"{url}/?graph=plain")
        ask(page, ADA, until=".draft")
        server.terminate()
        page.wait_for_selector("#answer[data-phase=broken]", timeout=60_000)
        assert "The connection broke" in page.inner_text("#answer")


def test_a_run_that_another_program_cancels_is_cancelled(visit: Visit, site: str) -> None:
    import httpx

    page = visit(f"{site}/?graph=plain")
    ask(page, ADA, until=".draft")
    (thread,) = httpx.post(f"{site}/threads/search", json={"status": "busy"}).json()
    (run,) = httpx.get(f"{site}/threads/{thread['thread_id']}/runs").json()
    httpx.post(f"{site}/threads/{thread['thread_id']}/runs/{run['run_id']}/cancel", json={})
    page.wait_for_selector("#answer[data-phase=cancelled]")
    assert "The run was cancelled." in page.inner_text("#answer")

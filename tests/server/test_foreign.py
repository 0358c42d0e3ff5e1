"""What a browser sends for pages of other sites, sent again to the server of `langgraph.json`.

The requests were recorded from Chromium; `tests.page.test_browser_foreign` has the browser itself.
"""

from typing import Any

import httpx
import pytest

from crag.page.rules import STUDIO
from tests.page.recording import recorded, replayed

pytestmark = pytest.mark.slow


def held(client: Any) -> list[Any]:
    threads = client.threads.search(limit=1000, sort_by="thread_id")
    runs = [client.runs.list(thread["thread_id"]) for thread in threads]
    return [threads, runs, client.assistants.search(limit=1000)]


def test_no_request_of_another_site_reads_starts_or_writes(client: Any, url: str) -> None:
    before = held(client)
    requests = recorded("foreign")
    assert len(requests) > 50
    for request in requests:
        status, headers, body = replayed(request, url)
        assert 400 <= status < 500, request
        assert not [name for name in headers if name.startswith("access-control")], request
        assert request["method"] == "HEAD" or '{"detail":"' in body, request
    assert held(client) == before


EVIL = "https://evil.example"
RUN = {"assistant_id": "rag", "input": {"question": "Why?"}}
PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,x-auth-scheme",
    "Access-Control-Request-Private-Network": "true",
}


@pytest.mark.parametrize(
    ("path", "body"), [("/assistants/search", {}), ("/threads", {}), ("/runs/stream", RUN)]
)
def test_studio_may_ask_the_server_that_printed_its_address_and_no_other_site_may(
    client: Any, url: str, path: str, body: dict[str, Any], *, production: bool
) -> None:
    """The address is that of `langgraph dev`; `crag serve --postgres` does not print it."""
    origin = EVIL if production else STUDIO
    for site, status in ((EVIL, 403), (origin, 403 if production else 200)):
        before = held(client)
        page = {"Origin": site, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
        asked = httpx.options(f"{url}{path}", headers=page | PREFLIGHT)
        done = httpx.post(f"{url}{path}", json=body, headers=page, timeout=60)
        assert (asked.status_code, done.status_code) == (status, status)
        if status == 200:
            assert asked.headers["Access-Control-Allow-Private-Network"] == "true"
            assert "x-auth-scheme" in asked.headers["Access-Control-Allow-Headers"]
            for answer in (asked, done):
                assert answer.headers["Access-Control-Allow-Origin"] == STUDIO
        else:
            for answer in (asked, done):
                assert not [name for name in answer.headers if name.startswith("access-control")]
            assert held(client) == before


def test_what_a_browser_sends_for_studio_is_answered(url: str, *, production: bool) -> None:
    for request in recorded("studio"):
        status, headers, body = replayed(request, url)
        assert status == (403 if production else 200), body
        assert headers.get("access-control-allow-origin") == (None if production else STUDIO)


def test_what_nobody_needs_is_off(url: str) -> None:
    """Even for a program of this machine, which the guard answers otherwise."""
    run = {"assistant_id": "rag", "input": {"question": "Why?"}, "webhook": "https://evil.test"}
    for path, body in (
        ("/runs", run),
        ("/runs/crons", {"assistant_id": "rag", "schedule": "* * * * *"}),
        ("/store/items/search", {"namespace_prefix": []}),
        ("/a2a/rag", {}),
    ):
        refused = httpx.post(f"{url}{path}", json=body)
        assert refused.status_code == 403
        assert "CRAG_SERVE_ALLOW=" in refused.json()["detail"]
    assert httpx.post(f"{url}/internal/truncate").status_code == 404
    assert httpx.get(f"{url}/docs").status_code == 403


def test_the_name_that_the_server_calls_itself_by_is_its_own(url: str) -> None:
    refused = httpx.get(f"{url}/info", headers={"Host": "api"})
    assert refused.status_code == 400
    assert "'api' is not the host" in refused.json()["detail"]

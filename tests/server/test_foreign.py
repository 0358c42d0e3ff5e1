"""What a browser sends for pages of other sites, sent again to the server of `langgraph.json`.

The requests were recorded from Chromium; `tests.page.test_browser_foreign` has the browser itself.
"""

from typing import Any

import httpx
import pytest

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
    for request in [*requests, *recorded("studio")]:
        status, headers, body = replayed(request, url)
        assert 400 <= status < 500, request
        assert not [name for name in headers if name.startswith("access-control")], request
        assert request["method"] == "HEAD" or '{"detail":"' in body, request
    assert held(client) == before


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

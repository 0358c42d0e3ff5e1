"""Keys come from the server's environment: nothing a client sends or sees holds one."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.asking import INPUT, QUICK, new_thread
from tests.server.chat import Chat
from tests.server.conftest import KEY

pytestmark = pytest.mark.slow
SENT = {
    "authorization": "Bearer sk-in-a-header-0001",
    "openai-api-key": "sk-in-a-header-0002",
    "x-openai-api-key": "sk-in-a-header-0003",
}


def test_keys_in_headers_are_neither_used_nor_kept(
    client: Any, url: str, chat: Chat, folder: Path
) -> None:
    thread = new_thread(client)
    body = {"assistant_id": "rag", "input": INPUT, "context": QUICK}
    reply = httpx.post(f"{url}/threads/{thread}/runs/wait", json=body, headers=SENT, timeout=60)
    assert reply.json()["answer"]
    assert chat.authorizations[-1] == f"Bearer {KEY}"  # That of the environment.

    runs = httpx.get(f"{url}/threads/{thread}/runs")
    history = httpx.get(f"{url}/threads/{thread}/history")
    assert runs.json()
    assert history.json()
    log = (folder / "server.log").read_text(encoding="utf-8")
    for text in (reply.text, runs.text, history.text, log):
        assert "sk-in-a-header" not in text
        assert KEY not in text


def test_a_key_in_the_context_is_no_setting_and_is_kept_so_none_belongs_there(
    client: Any, chat: Chat
) -> None:
    thread, key = new_thread(client), "not-a-real-key-0001"
    given = QUICK | {"openai_api_key": key}
    state = client.runs.wait(thread, "rag", input=INPUT, context=given)
    assert chat.authorizations[-1] == f"Bearer {KEY}"
    assert key not in str(state)
    assert key in str(client.runs.list(thread))

"""The same login at LangGraph's own server, through its auth hook."""

from pathlib import Path

import httpx
import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import AuthenticationError, NotFoundError

from crag.page.rules import AUTH
from tests.page.serving import GRAPHS, GUARDED, serving
from tests.production.test_login import ADA, BOB, KEYS

pytestmark = [pytest.mark.slow, pytest.mark.production]


def test_the_development_server_keeps_users_apart_too(tmp_path: Path) -> None:
    graphs = {"crag": f"{GRAPHS}:plain"}
    with serving(graphs, tmp_path, {**GUARDED, "auth": AUTH}, CRAG_SERVE_KEYS=KEYS) as (url, _):
        with (
            get_sync_client(url=url, api_key=None) as nobody,
            pytest.raises(AuthenticationError),
        ):
            nobody.threads.create()
        with (
            get_sync_client(url=url, api_key=ADA) as ada,
            get_sync_client(url=url, api_key=BOB) as bob,
        ):
            thread = ada.threads.create()["thread_id"]
            assert ada.threads.get(thread)["metadata"] == {"owner": "key:ada"}
            assert [one["thread_id"] for one in ada.threads.search()] == [thread]
            assert bob.threads.search() == []
            with pytest.raises(NotFoundError):
                bob.threads.get(thread)
            with pytest.raises(httpx.HTTPStatusError, match="404"):
                bob.runs.wait(thread, "crag", input={"question": "Why?"})
            assert [one["graph_id"] for one in bob.assistants.search()] == ["crag"]

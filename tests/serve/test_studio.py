"""`langgraph dev` with this repository's langgraph.json: its API, Studio, and who may use it."""

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import ToolMessage
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client, get_sync_client

from crag.graph_registry import GRAPHS
from crag.langchain import as_tool, documents_of
from tests.commands import crag, variables
from tests.serve.serving import free_port

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "remote_graph.py"
STUDIO, QUESTION = "https://smith.langchain.com", "How long is green tea brewed?"
TOKEN = "the-token-of-this-server"  # noqa: S105 - of this test


@contextmanager
def developing(folder: Path, **more: str) -> Iterator[tuple[str, Path]]:
    """Serve the graphs of this checkout as `langgraph dev` does; yield the address and the log."""
    port, log = free_port(), folder / "server.log"
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
    command += ["--port", str(port)]
    # In another folder, since it writes what it keeps into the one that it runs in.
    served = (ROOT / "langgraph.json").read_text("utf-8").replace('"./graph', f'"{ROOT}/graph')
    (folder / "langgraph.json").write_text(served)
    environment = variables({"CRAG_INDEX": str(folder / "index"), **more})
    environment |= {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGGRAPH_NO_VERSION_CHECK": "1"}
    with (
        log.open("wb") as writing,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=writing, stderr=subprocess.STDOUT
        ) as server,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(600):
                assert server.poll() is None, log.read_text()
                try:
                    httpx.get(f"{url}/ok")
                    break
                except httpx.TransportError:
                    time.sleep(0.2)
            yield url, log
        finally:
            server.terminate()
            server.wait(30)


@pytest.fixture(scope="module")
def developed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("studio")
    (folder / "tea.md").write_text("# Tea\n\nGreen tea is brewed for three minutes.\n")
    done = crag("index", str(folder / "tea.md"), environment={"CRAG_INDEX": str(folder / "index")})
    assert done.returncode == 0, done.stderr
    with developing(folder, CRAG_SEARCH="wikipedia") as (url, log):
        yield url, log


@pytest.fixture(scope="module")
def url(developed: tuple[str, Path]) -> str:
    return developed[0]


@pytest.fixture
async def remote(url: str) -> AsyncIterator[RemoteGraph]:
    """A graph whose clients are closed again, which those of `RemoteGraph` itself are not."""
    async with get_client(url=url) as client:
        with get_sync_client(url=url) as sync_client:
            yield RemoteGraph("crag", client=client, sync_client=sync_client)


def test_the_link_that_is_printed_opens_studio_and_no_other_site_may_ask(
    developed: tuple[str, Path],
) -> None:
    url, log = developed
    assert f"{STUDIO}/studio/?baseUrl={url}" in log.read_text()
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-api-key"}
    for origin, allowed in ((STUDIO, True), ("https://evil.example", False)):
        headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
        preflight = httpx.options(f"{url}/assistants/search", headers=headers | asked)
        assert (preflight.headers.get("access-control-allow-origin") == origin) is allowed
        reply = httpx.post(f"{url}/assistants/search", json={}, headers=headers)
        assert reply.status_code == (200 if allowed else 403)
        if allowed:
            assert reply.headers["access-control-allow-origin"] == origin


def test_every_route_asks_who_it_is(url: str) -> None:
    """Of another machine, as a proxy tells of it; whether the server is there is public."""
    routes = httpx.get(f"{url}/openapi.json").json()["paths"]
    assert len(routes) > 20
    for path, methods in routes.items():
        for method in methods:
            place = path.replace("{", "").replace("}", "")
            reply = httpx.request(method, url + place, headers={"X-Forwarded-For": "192.0.2.7"})
            assert (reply.status_code == 403) is (path not in {"/", "/ok"}), (
                method,
                path,
                reply.text,
            )


def test_studio_finds_graphs_settings_threads_and_time_travel(url: str) -> None:
    with get_sync_client(url=url) as client:
        assistants = client.assistants.search()
        assert {one["graph_id"] for one in assistants} == set(GRAPHS)
        (crag,) = [one["assistant_id"] for one in assistants if one["graph_id"] == "crag"]
        schemas = client.assistants.get_schemas(crag)
        assert schemas["context_schema"]["properties"]["k"]["default"] == 10  # type: ignore[index]
        drawing = client.assistants.get_graph(crag, xray=True)
        assert {"grade", "web:search"} <= {str(node["id"]) for node in drawing["nodes"]}
        thread = client.threads.create()["thread_id"]
        said = {"messages": [{"role": "user", "content": QUESTION}]}
        state: Any = client.runs.wait(thread, "crag", input=said, context={"k": 1})
        assert "three minutes" in state["answer"]
        history = client.threads.get_history(thread)
        before = next(one for one in history if one["next"] == ["grade"])
        again: Any = client.runs.wait(
            thread, "crag", input=None, checkpoint_id=before["checkpoint"]["checkpoint_id"],
            context={"upper": 100, "lower": 100},
        )  # fmt: skip
        assert again["action"] == "incorrect"


async def test_a_remote_graph_is_a_tool_and_streams_its_steps(remote: RemoteGraph) -> None:
    tool = as_tool(remote, settings={"strips_kept": 2})
    call = {"name": tool.name, "args": {"question": QUESTION}, "id": "1", "type": "tool_call"}
    reply = await tool.ainvoke(call)
    assert isinstance(reply, ToolMessage)
    assert (tool.name, reply.status) == ("ask_crag", "success")
    assert "tea.md" in reply.text
    steps = [name for step in remote.stream({"question": QUESTION}, stream_mode="updates")
             for name in step]  # fmt: skip
    assert steps == ["open_run", "retrieve", "grade", "refine", "generate"]
    found = documents_of(await remote.ainvoke({"question": QUESTION}))
    assert found[0].metadata["url"].endswith("tea.md")
    refused = await tool.ainvoke({**call, "args": {"question": " "}})
    assert "question is empty" in refused.text


def test_the_example_of_a_served_graph_runs(url: str) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLE), "--url", url, QUESTION]
    done = subprocess.run(command, env=variables({}), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "three minutes" in done.stdout
    assert done.stdout.endswith("steps: open_run retrieve grade refine generate\naction: correct\n")


def test_a_token_is_asked_for_and_users_belong_to_crag_serve(tmp_path: Path) -> None:
    with developing(tmp_path, CRAG_SERVE_TOKEN=TOKEN) as (url, _):
        assert httpx.post(f"{url}/threads", json={}).status_code == 401
        known = httpx.post(f"{url}/threads", json={}, headers={"x-api-key": TOKEN})
        assert known.status_code == 200
    code = "import crag.serve.studio"
    environment = variables({"CRAG_SERVE_KEYS": "ada=key-of-ada-0123456789"})
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert "langgraph dev, which is for one developer" in done.stderr

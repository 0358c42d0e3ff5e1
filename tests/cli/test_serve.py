"""`crag serve`: what it refuses, what it starts, and that nothing is left of it."""

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import httpx
import psutil
import pytest
from langgraph_sdk import get_sync_client
from mcp import Client, MCPError
from typer.testing import CliRunner

from crag.cli.app import app
from crag.cli.serve import (
    Address,
    ServerError,
    configuration,
    require_port,
    require_server,
    rules_for,
)
from crag.errors import IndexNotFoundError
from crag.graph.served import GRAPHS
from crag.page.guard import Rules
from tests.commands import crag
from tests.page.recording import recorded, replayed
from tests.page.serving import environment, free_port, printed, wait_for

ROOT = Path(__file__).parents[2]
CRAG = str(Path(sys.executable).with_name("crag"))


def test_it_serves_what_langgraph_json_does() -> None:
    written = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
    made = configuration(Rules())
    assert made["http"] == written["http"]
    assert list(made["graphs"]) == list(written["graphs"]) == list(GRAPHS)
    for name, graph in written["graphs"].items():
        assert made["graphs"][name]["description"] == graph["description"]
        file, graph_name = graph["path"].split(":")
        module = file.removeprefix("./").removesuffix(".py").replace("/", ".")
        assert made["graphs"][name]["path"] == f"crag.{module}:{graph_name}"


def test_what_is_allowed_is_not_switched_off() -> None:
    assert configuration(Rules())["http"]["disable_store"]
    assert "disable_store" not in configuration(Rules(allow="store"))["http"]


def test_a_token_is_made_at_each_start_unless_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Address("127.0.0.1", 2024)
    made = [rules_for(here, studio=False, token=True).token for _ in range(2)]
    assert made[0] != made[1]
    assert all(token and len(token) == 32 for token in made)
    assert rules_for(here, studio=False, token=False).token is None
    monkeypatch.setenv("CRAG_SERVE_TOKEN", "one-for-all-starts")
    kept = rules_for(here, studio=False, token=True).token
    assert kept
    assert kept.get_secret_value() == "one-for-all-starts"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104
def test_other_machines_are_let_in_with_a_token_only(host: str) -> None:
    address = Address(host, 2024)
    with pytest.raises(ServerError, match=r"--no-token is for this machine alone.*127\.0\.0\.1"):
        rules_for(address, studio=False, token=False)
    rules = rules_for(address, studio=False, token=True)
    assert rules.token
    assert rules.hosts == {socket.gethostname().lower() if host != "192.0.2.1" else host}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_this_machine_may_do_without(host: str) -> None:
    assert rules_for(Address(host, 2024), studio=False, token=False).token is None


def test_studio_is_let_in_where_it_is_asked_for() -> None:
    here = Address("127.0.0.1", 2024)
    assert rules_for(here, studio=False, token=True).origins == frozenset()
    assert rules_for(here, studio=True, token=True).origins == {"https://smith.langchain.com"}


def test_without_the_server_it_names_the_command_that_installs_it() -> None:
    with pytest.raises(ServerError, match=r"pip install 'corrective-rag\[studio\]'"):
        require_server("no_such_package")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServerError, match=f"port {port} is taken; .*--port"):
            require_port(Address("127.0.0.1", port))


def test_a_host_that_is_not_this_machine_is_named() -> None:
    with pytest.raises(ServerError, match=r"'192\.0\.2\.1' is no address of this machine.*--host"):
        require_port(Address("192.0.2.1", 2024))


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:1"), ("::", "http://[::1]:1"), ("::1", "http://[::1]:1")],
)  # fmt: skip
def test_the_address_is_one_for_this_machine(host: str, url: str) -> None:
    assert Address(host, 1).url == url


def test_a_missing_index_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["serve", "--index", "nowhere", "--port", str(free_port())])
    assert isinstance(result.exception, IndexNotFoundError)
    assert "crag index" in str(result.exception)


@pytest.mark.parametrize("port", ["0", "70000", "many"])
def test_a_port_that_is_none_is_refused(port: str) -> None:
    assert CliRunner().invoke(app, ["serve", "--port", port]).exit_code == 2


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("indexed")
    (folder / "kettle.md").write_text("A kettle boils water in three minutes.")
    assert crag("index", "kettle.md", "--index", "made", folder=folder).returncode == 0
    return folder


@pytest.fixture
def folder(tmp_path: Path, indexed: Path) -> Path:
    """Make a folder with an index, where nothing of the repository is."""
    shutil.copytree(indexed, tmp_path, dirs_exist_ok=True)
    (tmp_path / "crag.toml").write_text('index = "made"\n')
    return tmp_path


@contextmanager
def started(
    folder: Path, port: int, *options: str, **variables: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start `crag serve` with temporary files of its own; only `crag.toml` names its index."""
    temporary = folder / "temporary"
    temporary.mkdir()
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            [CRAG, "serve", "--port", str(port), *options], cwd=folder, stdout=said,
            stderr=said, env=environment(TMPDIR=str(temporary), **variables),
        ) as serve,
    ):  # fmt: skip
        try:
            yield serve
        finally:
            serve.kill()  # What failed to end does not hold up the tests.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "options"),
    [(signal.SIGINT, ["--studio", "--verbose"]), (signal.SIGTERM, ["--no-token"])],
)
def test_it_serves_anywhere_and_ends_with_all_it_started(
    folder: Path, ending: signal.Signals, options: list[str]
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with started(folder, port, *options) as serve:
        try:
            wait_for(url, serve)
            addresses = printed(folder / "said")
            token = addresses.get("Token")
            page = httpx.get(addresses["Page"])
            assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert "<title>crag: ask and watch</title>" in page.text
            assert httpx.get(url, headers={"Host": "evil.example"}).status_code == 400
            with get_sync_client(url=url, api_key=token) as client:
                assert {one["graph_id"] for one in client.assistants.search()} == set(GRAPHS)
                asked = {"question": "How long does a kettle take?"}
                state = client.runs.wait(None, "crag", input=asked)
                assert "three minutes" in state["answer"]  # type: ignore[call-overload]
            assert asyncio.run(tools(addresses["MCP"], token)) == set(GRAPHS)
            studio(url, token)
            keyed = {"Authorization": f"Bearer {token or 'any'}"}
            listed = httpx.get(f"{addresses['OpenAI']}/models", headers=keyed).json()["data"]
            assert {one["id"] for one in listed} == set(GRAPHS)
            assert httpx.get(f"{addresses['OpenAI']}/models").is_success is (token is None)
            below = psutil.Process(serve.pid).children(recursive=True)
            assert below
        finally:
            serve.send_signal(ending)
            assert serve.wait(60) == 0
    assert not any(process.is_running() for process in below)
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    assert {path.name for path in folder.iterdir()} == {
        "kettle.md", "made", "crag.toml", "said", "temporary",
    }  # fmt: skip
    assert not list((folder / "temporary").glob("crag-serve-*"))
    expected = {"Page": f"{url}/", "API": url, "MCP": f"{url}/mcp", "OpenAI": f"{url}/v1"}
    if token:
        base = quote(f"{url}/token/{token}", safe="")
        expected["Page"] = f"{url}/?token={token}"
        expected["Token"] = token
        expected["Studio"] = f"https://smith.langchain.com/studio/?baseUrl={base}"
    assert addresses == expected
    if token:  # It is shown once, and not in what the server says afterwards.
        log = (folder / "said").read_text().partition("Ctrl-C")[2]
        assert "Refused with 401" in log
        assert token not in log


async def tools(url: str, token: str | None) -> set[str]:
    """Return the tools that a real MCP client finds; without headers, the address has the token."""
    async with Client(f"{url}?token={token}" if token else url) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("rag", {"question": "How long does a kettle take?"})
        assert "three minutes" in result.content[0].text  # type: ignore[union-attr]
    if token:
        with pytest.raises((MCPError, ExceptionGroup)):
            async with Client(url):
                pass
    return names


def studio(url: str, token: str | None) -> None:
    """Send what Studio sends: it is let in where it was asked for, and where it has the token."""
    for request in recorded("studio"):
        status, headers, body = replayed(request, url, f"/token/{token}" if token else "")
        if token is None:
            assert (status, "access-control-allow-origin" in headers) == (403, False)
            continue
        assert status == 200, body
        assert headers["access-control-allow-origin"] == "https://smith.langchain.com"
        if request["method"] != "OPTIONS":
            assert replayed(request, url)[0] == 401
        if (request["method"], request["path"]) == ("POST", "/runs/wait"):
            assert json.loads(body)["question"] == "Why?"
    for request in recorded("foreign"):
        status, headers, _ = replayed(request, url, f"/token/{token}" if token else "")
        assert 400 <= status < 500, request
        assert "access-control-allow-origin" not in headers


@pytest.mark.slow
def test_a_server_that_cannot_start_says_why(folder: Path) -> None:
    with started(folder, free_port(), MOUNT_PREFIX="no-slash") as serve:
        assert serve.wait(60) == 2
    said = (folder / "said").read_text()
    assert "the server ended" in said
    assert "Invalid mount_prefix 'no-slash'" in said

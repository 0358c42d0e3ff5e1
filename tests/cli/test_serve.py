"""`crag serve`: what it refuses, what it starts, and that nothing is left of it."""

import asyncio
import errno
import json
import shutil
import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import httpx
import psutil
import pytest
from langgraph_sdk import get_sync_client
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
from crag.graph_registry import OFFERED
from crag.page.rules import STUDIO, Rules
from crag.prompts import copy_to
from tests.commands import Done, crag
from tests.page.recording import recorded, replayed
from tests.page.serving import environment, free_port, printed, wait_for

ROOT = Path(__file__).parents[2]
CRAG = str(Path(sys.executable).with_name("crag"))


def test_it_serves_what_langgraph_json_does() -> None:
    written = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
    made = configuration(Rules(origins=STUDIO))
    assert made["http"] == written["http"]
    assert configuration(Rules())["http"]["cors"] == {"allow_origins": []}
    assert list(made["graphs"]) == list(written["graphs"]) == list(OFFERED)
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
    with pytest.raises(ServerError, match=r"pip install -c constraints\.txt '\.\[studio\]'"):
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
def started(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start `crag serve` with temporary files of its own; only `crag.toml` names its index."""
    temporary = folder / "temporary"
    temporary.mkdir()
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            [CRAG, "serve", "--port", str(port), "--studio", "--verbose"], cwd=folder,
            stdout=said, stderr=said, env=environment(TMPDIR=str(temporary)),
        ) as serve,
    ):  # fmt: skip
        try:
            yield serve
        finally:
            serve.kill()  # What failed to end does not hold up the tests.


STAND_IN = """#!{python} -S
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

told = dict(os.environ, ARGUMENTS=" ".join(sys.argv[1:]), FILES=" ".join(os.listdir()))
with open(os.environ["STAND_IN"], "w") as file:
    json.dump(told, file)
if "CANNOT_START" in os.environ:
    sys.exit("no such table")
statuses = [503, 200]


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(statuses.pop(0))
        self.end_headers()


port = int(sys.argv[sys.argv.index("--port") + 1])
with HTTPServer(("127.0.0.1", port), Handler) as server:
    while statuses:
        server.handle_request()
sys.exit(int(os.environ.get("ENDS_WITH", 0)))
"""
"""A program in the place of the interpreter: it is ready at the second request, and then ends."""


class Served(NamedTuple):
    """What `crag serve` said, and what it gave the server."""

    done: Done
    url: str
    given: dict[str, str]


def served(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str, **variables: str
) -> Served:
    stand_in, told, port = folder / "stand-in", folder / "given.json", free_port()
    stand_in.write_text(STAND_IN.format(python=sys.executable))
    stand_in.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stand_in))
    done = crag(
        "serve", "--port", str(port), *options, folder=folder,
        environment={"STAND_IN": str(told), **variables},
    )  # fmt: skip
    assert told.exists(), done.stderr
    return Served(done, f"http://127.0.0.1:{port}", json.loads(told.read_text()))


KEYS = "ada=a-key-that-is-long-enough,bob=another-key-as-long"
DATABASE = "postgresql://crag:secret@127.0.0.1:1/crag"


def test_production_is_several_processes_on_one_database(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_to(folder / "prompts")
    done, url, given = served(
        folder, monkeypatch, "--postgres", DATABASE, "--workers", "3",
        CRAG_SERVE_UPLOADS="uploads", CRAG_EVALUATOR_FALLBACK="cosine", CRAG_LOGS="json",
        CRAG_PROMPTS="prompts",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert given["CRAG_SERVE_DATABASE"] == DATABASE
    assert DATABASE not in given["ARGUMENTS"]
    assert "crag.server.app:create" in given["ARGUMENTS"]
    assert "--workers 3" in given["ARGUMENTS"]
    assert "--log-config logging.json" in given["ARGUMENTS"]
    assert "logging.json" in given["FILES"]
    # It runs elsewhere, so what may be a path is one from the root.
    assert given["CRAG_SERVE_UPLOADS"] == str(folder / "uploads")
    assert given["CRAG_PROMPTS"] == str(folder / "prompts")
    assert given["CRAG_INDEX"] == str(folder / "made")
    assert given["CRAG_EVALUATOR_FALLBACK"] == "cosine"
    told = printed_lines(done.stdout)
    assert told["API"] == url
    assert told["Page"] == f"{url}/?token={told['Token'].split()[0]}"
    assert not {"MCP", "OpenAI", "Users", "Studio"} & set(told)


def printed_lines(told: str) -> dict[str, str]:
    lines = (line.split(maxsplit=1) for line in told.splitlines())
    return {words[0]: words[1] for words in lines if len(words) == 2}


def test_users_with_keys_of_their_own_are_asked_for_no_token(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    done, url, given = served(folder, monkeypatch, "--open", CRAG_SERVE_KEYS=KEYS)
    assert done.returncode == 0, done.stderr
    told = printed_lines(done.stdout)
    assert told["Users"].startswith("each with a key or token of their own")
    assert "Token" not in told
    assert (told["MCP"], told["OpenAI"]) == (f"{url}/mcp", f"{url}/v1")
    assert opened == [f"{url}/"]
    assert "langgraph.json" in given["FILES"]


def test_whoever_lets_others_in_is_told_that_nothing_is_encrypted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, _, given = served(folder, monkeypatch, "--host", "0.0.0.0")  # noqa: S104
    assert "can use it and its documents;\nnothing is encrypted" in done.stdout
    assert socket.gethostname().lower() in given["CRAG_SERVE_HOSTS"]


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"CANNOT_START": "1"}, ("the server ended (1). Its last lines:", "  no such table")),
        ({"ENDS_WITH": "3"}, ("the server ended (3). Its last lines:",)),
    ],
)
def test_a_server_that_ends_by_itself_says_why(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], told: tuple[str, ...]
) -> None:
    done = served(folder, monkeypatch, **variables).done
    assert done.returncode == 2
    for line in told:
        assert line in done.stderr


def test_a_port_that_needs_rights_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", refused)
    with pytest.raises(ServerError, match="port 80 needs rights that you lack; choose one above"):
        require_port(Address("127.0.0.1", 80))


def test_users_log_in_at_langgraphs_server_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "auth" not in configuration(Rules())
    monkeypatch.setenv("CRAG_SERVE_KEYS", KEYS)
    told = configuration(Rules())["auth"]
    assert told == {"path": "crag.page.login:auth", "disable_studio_auth": True}


@pytest.mark.slow
def test_it_serves_anywhere_and_ends_with_all_it_started(folder: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with started(folder, port) as serve:
        try:
            wait_for(url, serve)
            addresses = printed(folder / "said")
            token = addresses["Token"]
            page = httpx.get(addresses["Page"])
            assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
            assert "<title>crag: ask and watch</title>" in page.text
            assert httpx.get(url, headers={"Host": "evil.example"}).status_code == 400
            with get_sync_client(url=url, api_key=token) as client:
                assert {one["graph_id"] for one in client.assistants.search()} == set(OFFERED)
                asked = {"question": "How long does a kettle take?"}
                state = client.runs.wait(None, "crag", input=asked)
                assert "three minutes" in state["answer"]  # type: ignore[call-overload]
            assert asyncio.run(tools(addresses["MCP"], token)) == set(OFFERED)
            studio(url, token)
            keyed = {"Authorization": f"Bearer {token}"}
            listed = httpx.get(f"{addresses['OpenAI']}/models", headers=keyed).json()["data"]
            assert {one["id"] for one in listed} == set(OFFERED)
            assert httpx.get(f"{addresses['OpenAI']}/models").status_code == 401
            below = psutil.Process(serve.pid).children(recursive=True)
            assert below
        finally:
            serve.send_signal(signal.SIGINT)
            assert serve.wait(60) == 0
    assert not any(process.is_running() for process in below)
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
    assert {path.name for path in folder.iterdir()} == {
        "kettle.md", "made", "crag.toml", "said", "temporary",
    }  # fmt: skip
    assert not list((folder / "temporary").glob("crag-serve-*"))
    base = quote(f"{url}/token/{token}", safe="")
    assert addresses == {
        "Page": f"{url}/?token={token}", "API": url, "MCP": f"{url}/mcp", "OpenAI": f"{url}/v1",
        "Token": token, "Studio": f"https://smith.langchain.com/studio/?baseUrl={base}",
    }  # fmt: skip
    # It is shown once, and not in what the server says afterwards.
    log = (folder / "said").read_text().partition("Ctrl-C")[2]
    assert "Refused with 401" in log
    assert token not in log


async def tools(url: str, token: str) -> set[str]:
    """Return the tools that a real MCP client finds; without headers, the address has the token."""
    from mcp import Client, MCPError

    async with Client(f"{url}?token={token}") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        result = await client.call_tool("rag", {"question": "How long does a kettle take?"})
        assert "three minutes" in result.content[0].text  # type: ignore[union-attr]
    with pytest.raises((MCPError, ExceptionGroup)):
        async with Client(url):
            pass
    return names


def studio(url: str, token: str) -> None:
    """Send what Studio sends: it is let in where it has the token."""
    for request in recorded("studio"):
        status, headers, body = replayed(request, url, f"/token/{token}")
        assert status == 200, body
        assert headers["access-control-allow-origin"] == "https://smith.langchain.com"
        if request["method"] != "OPTIONS":
            assert replayed(request, url)[0] == 401
        if (request["method"], request["path"]) == ("POST", "/runs/wait"):
            assert json.loads(body)["question"] == "Why?"
    for request in recorded("foreign"):
        status, headers, _ = replayed(request, url, f"/token/{token}")
        assert 400 <= status < 500, request
        assert "access-control-allow-origin" not in headers

"""Who gets an answer: every route of both servers, asked by everybody there is.

The routes are those of the running application, so a new one is asked too. What is not said to be
public here has to be protected, whoever it belongs to.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from crag.cli.address import Address
from crag.cli.serve import configuration, rules_for
from crag.page.rules import Rules
from crag.server.app import create
from crag.server.settings import ServerSettings
from tests.page.listed import WEBSOCKET, walked
from tests.page.serving import GRAPHS, serving
from tests.production.conftest import graph_that_answers
from tests.production.test_login import ADA, BOB, KEYS

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-tests"  # noqa: S105
CALLERS = {
    "nobody": "", "a wrong key": "a-key-of-nobody-0123", "ada": ADA, "bob": BOB, "the token": TOKEN,
}  # fmt: skip
PUBLIC = {("GET", "/"), ("HEAD", "/"), ("GET", "/ok"), ("HEAD", "/ok"),
          ("GET", "/page/{name}"), ("HEAD", "/page/{name}")}  # fmt: skip
SWITCHED_OFF = re.compile(
    r"/(runs/crons|threads/{thread_id}/(runs/crons|commands|stream/events)|docs$|openapi|metrics)"
)
COPIES = "/threads/{thread_id}/copy"
"""LangGraph's server says 409 for the copy of a thread that does not exist."""
CHANGES_DOCUMENTS = {("DELETE", "/documents"), ("PUT", "/documents/{name}")}
OF_A_THREAD = re.compile(r"/threads/{thread(_id)?}")
NOWHERE = "00000000-0000-4000-8000-000000000000"
PRIVATE = "of-ada-alone"
"""What the thread and the run hold that a request asks about."""
STREAMED = re.compile(r"/threads/{thread_id}/(runs/{run_id}/)?stream")
"""LangGraph's server begins the stream before it looks whose it is, and then sends an error."""
REFUSED = {401, 403}


class Server(NamedTuple):
    """A running server, and who may use it."""

    client: httpx.Client
    routes: list[tuple[str, str]]
    admitted: frozenset[str]
    """The callers who get in."""
    has_users: bool
    """Whether those are apart from each other."""


@contextmanager
def development(folder: Path, **variables: str) -> Iterator[tuple[httpx.Client, Any]]:
    """Run LangGraph's server as `crag serve` does."""
    folder.mkdir()
    rules = Rules(keys=variables.get("CRAG_SERVE_KEYS"))  # type: ignore[arg-type]
    told = configuration(rules)
    told["http"]["app"] = "tests.page.listed:app"
    documents = {"CRAG_INDEX": str(folder / "index"), "PYTHONPATH": str(Path(__file__).parents[2])}
    with (
        serving({"crag": f"{GRAPHS}:plain"}, folder, told | {"graphs": {"crag": f"{GRAPHS}:plain"}},
                CRAG_SERVE_TOKEN=TOKEN, **documents, **variables) as (url, _),
        httpx.Client(base_url=url, timeout=60) as client,
    ):  # fmt: skip
        key = ADA if rules.login else TOKEN
        routes = client.get("/info/routes", headers={"x-api-key": key}).json()
        yield client, [tuple(route) for route in routes]


@contextmanager
def production(
    settings: ServerSettings, rules: Rules, place: str = "127.0.0.1"
) -> Iterator[tuple[httpx.Client, Any]]:
    """Run our own server in the process of the test, for clients at `place`."""
    app: Starlette = create(settings, {"crag": graph_that_answers()}, rules)
    with TestClient(app, "http://127.0.0.1", client=(place, 9)) as client:
        yield client, sorted(set(walked(app.routes)))


SERVERS: dict[str, tuple[frozenset[str], bool]] = {
    "development": (frozenset({"the token"}), False),
    "development with keys": (frozenset({"ada", "bob"}), True),
    "production": (frozenset({"the token"}), False),
    "production with keys": (frozenset({"ada", "bob"}), True),
    "production for one user": (frozenset({"the token"}), False),
}


@pytest.fixture(scope="module", params=SERVERS)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres_url: str
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("access") / "server"
    settings = ServerSettings.model_validate({"database": postgres_url, "connections": 4})
    both = {"CRAG_SERVE_KEYS": KEYS, "CRAG_SERVE_EDITORS": "ada"}
    with ExitStack() as stack:
        match request.param:
            case "development":
                client, routes = stack.enter_context(development(folder))
            case "development with keys":
                client, routes = stack.enter_context(development(folder, **both))
            case "production":
                client, routes = stack.enter_context(production(settings, Rules(token=TOKEN)))
            case "production with keys":
                rules = Rules(keys=KEYS, token=TOKEN)
                client, routes = stack.enter_context(production(settings, rules, "192.0.2.7"))
            case _:
                everywhere = Address("0.0.0.0", 2024)  # noqa: S104
                patch = stack.enter_context(pytest.MonkeyPatch.context())
                patch.setenv("CRAG_SERVE_TOKEN", TOKEN)
                rules = rules_for(everywhere, studio=False, token=True, production=True,
                                  one_user=True)  # fmt: skip
                client, routes = stack.enter_context(production(settings, rules, "192.0.2.7"))
        yield Server(client, routes, *SERVERS[request.param])


def as_caller(caller: str) -> dict[str, str]:
    return {"x-api-key": CALLERS[caller]} if CALLERS[caller] else {}


class Filled(NamedTuple):
    """A route whose names are replaced by a thread and a run of somebody."""

    method: str
    path: str


def filled(server: Server, method: str, path: str, owner: str) -> Filled:
    """Fill the names of a path with what is there, made for this one request."""
    if not OF_A_THREAD.match(path):
        path = path.replace("{assistant}", "crag").replace("{assistant_id}", "crag")
        return Filled(method, re.sub(r"{[^}]*}", "anything.md", path))
    own = as_caller(owner)
    made = {"metadata": {"title": PRIVATE}}
    thread = server.client.post("/threads", json=made, headers=own).json()["thread_id"]
    path = OF_A_THREAD.sub(f"/threads/{thread}", path)
    if "{run" in path:
        asked = {"assistant_id": "crag", "input": {"question": PRIVATE}}
        where = f"/threads/{thread}/runs"
        run = server.client.post(where, json=asked, headers=own).json()["run_id"]
        server.client.get(f"{where}/{run}/join", headers=own)
        path = re.sub(r"{run(_id)?}", run, path)
    return Filled(method, re.sub(r"{[^}]*}", NOWHERE, path))


def asked(server: Server, request: Filled, caller: str, *, reads: bool) -> tuple[int, str]:
    """Return the status of the answer and, if it `reads` it, how its body begins."""
    headers = as_caller(caller)
    if request.method == WEBSOCKET:
        url = str(server.client.base_url.join(request.path)).replace("http", "ws", 1)
        try:
            with connect(url, additional_headers=headers):
                return 101, ""
        except InvalidStatus as refused:
            return refused.response.status_code, ""
    body: dict[str, Any] = {}
    if request.path.startswith("/documents"):
        headers["content-type"] = "application/octet-stream"
        body = {"content": b"A kettle boils water."} if request.method == "PUT" else {}
    elif request.path.endswith("/state/checkpoint"):
        body = {"json": {"checkpoint": {"checkpoint_id": NOWHERE}}}
    elif request.method in {"POST", "PATCH", "PUT"}:
        body = {"json": {"assistant_id": "crag", "input": {"question": "Why"}}}
    begins = b""
    with (
        server.client.stream(request.method, request.path, headers=headers, **body) as answer,
        suppress(httpx.ReadTimeout),
    ):
        begins = next(answer.iter_bytes(), b"") if reads else b""
    return answer.status_code, begins.decode()


def fits(server: Server, method: str, path: str, caller: str, status: int) -> bool:
    """Return whether a caller was answered as they should be."""
    if (method, path) in PUBLIC:
        return status == (404 if "{" in path else 200)
    if caller not in server.admitted:
        return status == 401
    elsewhere = server.has_users and caller == "bob"
    if SWITCHED_OFF.match(path) or (elsewhere and (method, path) in CHANGES_DOCUMENTS):
        return status == 403
    if elsewhere and OF_A_THREAD.match(path):
        streams = status == 200 and bool(STREAMED.match(path))
        return status == (409 if path == COPIES else 404) or streams
    return status < 500 and status not in REFUSED


def test_everybody_gets_what_is_theirs_and_nothing_else(server: Server) -> None:
    owner = "ada" if server.has_users else "the token"
    assert len(server.routes) > 30
    wrong = []
    for method, path in server.routes:
        request = filled(server, method, path, owner)
        for caller in sorted(CALLERS, key=owner.__eq__):  # The owner may remove it, and comes last.
            status, begins = asked(server, request, caller, reads=caller != owner)
            if not fits(server, method, path, caller, status):
                wrong.append(f"{method} {path}: {status} for {caller}")
            if PRIVATE in begins:
                wrong.append(f"{method} {path}: {caller} reads what is {owner}'s")
    assert not wrong, "\n".join(wrong)

"""The guard by itself: what it answers, what it refuses, and what it says about it."""

import gc
import json
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from crag.errors import SettingsError
from crag.page.app import middleware
from crag.page.guard import Guard
from crag.page.rules import (
    AUTH,
    FEATURES,
    STUDIO,
    Rules,
    rules_of_process,
    settings_of_server,
)

URL = "http://127.0.0.1:2024"
TOKEN = "a-token-of-the-tests"  # noqa: S105
EVIL = {"Origin": "http://evil.test", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
PAGE = {"Origin": URL, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Rules are read from the environment and `.env`; neither is that of the machine here."""
    for name in ("TOKEN", "HOSTS", "ORIGINS", "ALLOW", "MAX_BYTES", "UPLOADS"):
        monkeypatch.delenv(f"CRAG_SERVE_{name}", raising=False)
    monkeypatch.chdir(tmp_path)


async def echo(request: Request) -> JSONResponse:
    """Say what arrived behind the guard."""
    body = (await request.body()).decode()
    headers = dict(request.headers)
    user = getattr(request.state, "user", None)
    return JSONResponse(
        {
            "path": request.url.path, "query": request.url.query, "headers": headers,
            "body": body, "user": user,
        }
    )  # fmt: skip


async def talk(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text("welcome")
    await websocket.close()


def app(rules: Rules) -> Starlette:
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    everything = Route("/{path:path}", echo, methods=methods)
    return Starlette(
        routes=[WebSocketRoute("/threads/{id}/stream/events", talk), everything],
        middleware=middleware(rules),
    )


def connected(
    rules: Rules, client: tuple[str, int] = ("127.0.0.1", 9), base: str = URL, root: str = ""
) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app(rules), client=client, root_path=root)
    return httpx.AsyncClient(transport=transport, base_url=base)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with connected(Rules()) as client:
        yield client


@pytest.fixture
async def asking() -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server that asks for a token."""
    async with connected(Rules(token=TOKEN)) as client:
        yield client


def said(answer: httpx.Response, status: int) -> str:
    """Return the reason of a refusal."""
    assert answer.status_code == status, answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not [name for name in answer.headers if name.startswith("access-control")]
    return str(answer.json()["detail"])


@pytest.mark.parametrize("headers", [{}, PAGE], ids=["program", "page"])
async def test_programs_and_the_page_are_answered(
    client: httpx.AsyncClient, headers: Mapping[str, str]
) -> None:
    answer = await client.post("/threads", json={"a": 1}, headers=headers)
    assert json.loads(answer.json()["body"]) == {"a": 1}
    assert (await client.get("/threads/1/state", headers=headers)).status_code == 200
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize(
    "headers",
    [
        EVIL,
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:2025"},
        {"Origin": "http://localhost:2024"},
        {"Origin": "https://127.0.0.1:2024"},
        {"Origin": f"{URL}.evil.test"},
        {"Origin": STUDIO},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        PAGE | {"Sec-Fetch-Site": "cross-site"},
        LINK,
    ],
    ids=lambda headers: "/".join(headers.values())[:60],
)
async def test_pages_of_other_sites_are_refused(
    client: httpx.AsyncClient, method: str, headers: Mapping[str, str]
) -> None:
    answer = await client.request(method, "/threads", headers=headers)
    assert "other sites" in said(answer, 403)


async def test_a_link_of_another_site_opens_the_page_and_nothing_else(
    client: httpx.AsyncClient,
) -> None:
    assert (await client.get("/?question=Why", headers=LINK)).status_code == 200
    for changed in ({"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Mode": "no-cors"}, EVIL):
        said(await client.get("/", headers=LINK | changed), 403)
    said(await client.post("/", headers=LINK), 403)
    said(await client.get("/page/main.js", headers=LINK), 403)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost:9", "LOCALHOST:2024", "[::1]:2024", "127.0.0.1:2024"]
)
async def test_this_machine_has_these_names(client: httpx.AsyncClient, host: str) -> None:
    assert (await client.get("/info", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.test", "api", "api:2024", "localhost.evil.test", "127.0.0.1.evil.test", "localhost.",
        "127.0.0.2", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "user@127.0.0.1", "", "a b",
        "127.0.0.1:2024:1", "127.0.0.1/", "192.168.0.7:2024", "[::]:2024",
    ],
)  # fmt: skip
async def test_every_other_name_is_refused(client: httpx.AsyncClient, host: str) -> None:
    answer = await client.get("/info", headers={"Host": host})
    assert "CRAG_SERVE_HOSTS" in said(answer, 400)


async def test_names_are_added_and_the_address_of_the_connection_counts() -> None:
    rules = Rules(hosts="Box.example.org,fd00::1", token=TOKEN)
    async with connected(rules, base="http://192.168.0.7:2024") as client:
        client.headers["x-api-key"] = TOKEN
        for host in ("box.example.org:80", "[fd00::1]:2024", "192.168.0.7:2024"):
            assert (await client.get("/info", headers={"Host": host})).status_code == 200
        said(await client.get("/info", headers={"Host": "192.168.0.8"}), 400)


async def test_a_header_that_decides_comes_once(client: httpx.AsyncClient) -> None:
    twice = [("Host", "127.0.0.1"), ("Host", "evil.test")]
    assert "host comes twice" in said(await client.get("/info", headers=twice), 400)


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "text/json",
     "text/plain;application/json", "application/json-seq"],
)  # fmt: skip
async def test_a_body_is_json_or_refused(client: httpx.AsyncClient, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = await client.post("/threads", content=b"{}", headers=headers)
    assert "application/json" in said(answer, 415)


async def test_clients_of_openai_are_told_why_as_they_read_it(asking: httpx.AsyncClient) -> None:
    for url in ("/v1/models", "/token/of-another/v1/models"):
        refused = await asking.get(url)
        assert refused.json()["error"]["message"] == said(refused, 401)
    assert (await asking.get("/threads")).json().keys() == {"detail"}


async def test_a_document_is_sent_as_bytes_and_nothing_else_is(client: httpx.AsyncClient) -> None:
    headers = {"Content-Type": "application/octet-stream"}
    taken = await client.put("/documents/a.md", content=b"text", headers=headers)
    assert taken.json()["body"] == "text"
    for method, path, kind in (
        ("PUT", "/documents/a.md", "application/json"),
        ("PUT", "/documents/a.md", "text/plain"),
        ("POST", "/documents/a.md", "application/octet-stream"),
        ("PUT", "/threads/a", "application/octet-stream"),
    ):
        answer = await client.request(method, path, content=b"{}", headers={"Content-Type": kind})
        assert "a body is read as" in said(answer, 415)


DOCUMENTS = [
    ("GET", "/documents"), ("GET", "/documents/progress"), ("GET", "/documents/source?source=a.md"),
    ("GET", "/documents/picture"), ("PUT", "/documents/a.md"), ("DELETE", "/documents?path=a.md"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), DOCUMENTS)
async def test_who_has_the_token_manages_documents_from_outside_the_container_too(
    method: str, path: str
) -> None:
    known = {"x-api-key": TOKEN}
    async with connected(Rules(token=TOKEN), client=("172.17.0.1", 1234)) as outside:
        assert (await outside.request(method, path, headers=known)).status_code == 200
        forwarded = known | {"X-Forwarded-For": "192.0.2.7"}
        assert (await outside.request(method, path, headers=forwarded)).status_code == 200
        said(await outside.request(method, path), 401)
        said(await outside.request(method, path, headers={"x-api-key": TOKEN[:-1]}), 401)
        said(await outside.request(method, path, headers=known | EVIL), 403)


@pytest.mark.parametrize(("method", "path"), DOCUMENTS)
async def test_without_a_token_documents_are_managed_from_this_machine_alone(
    method: str, path: str
) -> None:
    async with connected(Rules(), client=("172.17.0.1", 1234)) as outside:
        assert "CRAG_SERVE_TOKEN" in said(await outside.request(method, path), 403)
        said(await outside.request(method, path, headers={"x-api-key": TOKEN}), 403)
    async with connected(Rules()) as near:
        assert (await near.request(method, path)).status_code == 200
        for name in ("X-Forwarded-For", "Forwarded", "Via"):
            proxied = await near.request(method, path, headers={name: "192.0.2.7"})
            assert "own machine only" in said(proxied, 403)


async def test_json_may_name_its_charset_and_no_body_needs_no_type(
    client: httpx.AsyncClient,
) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    answer = await client.post("/threads", content=b"{}", headers=headers)
    assert answer.json()["body"] == "{}"
    assert (await client.post("/threads/1/runs/2/cancel")).status_code == 200


async def test_a_body_is_limited_whether_its_length_is_said_or_not() -> None:
    headers = {"Content-Type": "application/json"}

    async def chunks(count: int) -> AsyncIterator[bytes]:
        for _ in range(count):
            yield b" " * 10

    async with connected(Rules(max_bytes=100)) as client:
        exact = await client.post("/threads", content=b" " * 100, headers=headers)
        assert len(exact.json()["body"]) == 100
        answer = await client.post("/threads", content=b" " * 101, headers=headers)
        assert "CRAG_SERVE_MAX_BYTES" in said(answer, 413)
        exact = await client.post("/threads", content=chunks(10), headers=headers)
        assert len(exact.json()["body"]) == 100
        said(await client.post("/threads", content=chunks(11), headers=headers), 413)


async def test_a_body_that_is_refused_is_not_kept() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 100_000

    headers = {"Content-Type": "application/json"}
    async with connected(Rules(max_bytes=10**6)) as client:
        gc.collect()
        gc.disable()  # Nothing may wait for it.
        tracemalloc.start()
        try:
            for _ in range(10):
                said(await client.post("/threads", content=chunks(), headers=headers), 413)
            kept, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
    assert kept < 2 * 10**6


@pytest.mark.parametrize(
    "sent",
    [
        {"headers": {"x-api-key": TOKEN}},
        {"headers": {"Authorization": f"Bearer {TOKEN}"}},
        {"headers": {"Authorization": f"bearer  {TOKEN}"}},
        {"headers": {"Authorization": "Bearer of-another", "x-api-key": TOKEN}},
        {"params": {"token": TOKEN, "limit": "1"}},
        {"url": f"/token/{TOKEN}/threads"},
    ],
)
async def test_the_token_is_taken_in_four_places_and_goes_no_further(
    asking: httpx.AsyncClient, sent: dict[str, Any]
) -> None:
    answer = await asking.get(**{"url": "/threads"} | sent)
    assert answer.status_code == 200
    assert answer.json()["path"] == "/threads"
    assert TOKEN not in answer.text
    assert "token" not in answer.json()["query"]
    assert ("limit=1" in answer.json()["query"]) == ("params" in sent)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"headers": PAGE},
        {"headers": {"x-api-key": TOKEN[:-1]}},
        {"headers": {"x-api-key": ""}},
        {"headers": {"x-api-key": "tökén".encode()}},
        {"headers": {"Authorization": TOKEN}},
        {"headers": {"Cookie": f"token={TOKEN}"}},
        {"params": {"token": "wrong"}},
        {"params": {"token": ""}},
        {"url": "/token//threads"},
        {"url": "/token/wrong-token-1234/threads"},
    ],
)
async def test_without_the_token_nothing_is_answered(
    asking: httpx.AsyncClient, sent: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    answer = await asking.get(**{"url": "/threads"} | sent)
    assert "crag serve printed" in said(answer, 401)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    for text in (answer.text, caplog.text):
        assert TOKEN[:-1] not in text
        assert "wrong-token" not in text


async def test_the_files_of_the_page_need_no_token(asking: httpx.AsyncClient) -> None:
    for path in ("/", "/page/main.js", "/ok"):
        assert (await asking.get(path)).status_code == 200
    for path in ("/info", "/mcp", "/assistants", "/runs", "/page"):
        said(await asking.get(path), 401)
    said(await asking.post("/"), 401)


KEYS = "ada=key-of-ada-0123456789"


@pytest.mark.parametrize("path", ["/threads", "/documents", "/v1/models", "/nowhere", "/page"])
async def test_with_a_login_a_path_that_is_not_public_asks_who_it_is(path: str) -> None:
    async with connected(Rules(keys=KEYS, token=TOKEN)) as client:
        assert "send your key as x-api-key" in said(await client.get(path), 401)
        said(await client.get(path, headers={"x-api-key": TOKEN}), 401)
        asks = {"Access-Control-Request-Method": "GET"}
        said(await client.options(path, headers=asks), 401)
        assert (await client.get("/page/main.js")).status_code == 200


async def test_what_is_behind_receives_the_user_and_not_the_key() -> None:
    async with connected(Rules(keys=KEYS)) as client:
        for name, value in (("x-api-key", "{}"), ("Authorization", "Bearer {}")):
            key = KEYS.partition("=")[2]
            answer = await client.get("/threads", headers={name: value.format(key)})
            assert answer.json()["user"] == "key:ada"
            assert key not in answer.text
    async with connected(Rules()) as client:
        assert (await client.get("/threads")).json()["user"] == ""


@pytest.mark.parametrize("editors", ["eve", "ada,oidc:ada", "key:eve"])
def test_an_editor_nobody_knows_is_refused(editors: str) -> None:
    with pytest.raises(SettingsError, match=r"CRAG_SERVE_EDITORS.*names in CRAG_SERVE_KEYS"):
        Rules(keys=KEYS, editors=editors)


async def test_the_token_does_not_let_other_sites_in(asking: httpx.AsyncClient) -> None:
    said(await asking.get("/threads", headers=EVIL | {"x-api-key": TOKEN}), 403)


async def test_without_a_token_only_this_machine_is_answered() -> None:
    async with connected(Rules(), client=("192.168.0.9", 9)) as client:
        assert "CRAG_SERVE_TOKEN" in said(await client.get("/threads"), 403)
        said(await client.get("/"), 403)
    async with connected(Rules(token=TOKEN), client=("192.168.0.9", 9)) as client:
        assert (await client.get("/threads", headers={"x-api-key": TOKEN})).status_code == 200


FEATURE_PATHS = {
    "/runs/crons": "crons", "/runs/crons/search": "crons", "/threads/1/runs/crons": "crons",
    "/store/items": "store", "/store/namespaces": "store", "/a2a/crag": "a2a",
    "/.well-known/agent-card.json": "a2a", "/ui/crag": "ui", "/docs": "docs",
    "/openapi.json": "docs", "/metrics": "metrics", "/runs/crons/": "crons",
    "/runs/%63rons": "crons", "/store": "store", "/threads/1/commands": "event_streaming",
    "/threads/1/stream/events": "event_streaming",
}  # fmt: skip


@pytest.mark.parametrize("path", FEATURE_PATHS)
async def test_what_nobody_needs_is_off_until_it_is_named(
    client: httpx.AsyncClient, path: str
) -> None:
    feature = FEATURE_PATHS[path]
    assert f"CRAG_SERVE_ALLOW={feature}" in said(await client.get(path), 403)
    async with connected(Rules(allow=feature)) as allowed:
        assert (await allowed.get(path)).status_code == 200
    async with connected(Rules(allow=",".join(FEATURES - {feature}))) as others:
        said(await others.get(path), 403)


@pytest.mark.parametrize("path", ["/internal/truncate", "/deploy", "/profile", "/noauth/threads"])
async def test_addresses_that_nobody_needs_are_none(client: httpx.AsyncClient, path: str) -> None:
    assert "no such address" in said(await client.post(path), 404)


@pytest.mark.parametrize(
    "path", ["/runs", "/runs/stream", "/runs/batch", "/threads/1/runs", "/threads/1/runs/wait"]
)
@pytest.mark.parametrize(
    "body",
    [
        b'{"webhook": "https://evil.test"}',
        b'{"\\u0077ebhook": "https://evil.test"}',
        b'[{}, {"webhook": ""}]',
    ],
)
async def test_a_run_with_a_webhook_is_refused(
    client: httpx.AsyncClient, path: str, body: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await client.post(path, content=body, headers=headers)
    assert "CRAG_SERVE_ALLOW=webhooks" in said(answer, 403)
    async with connected(Rules(allow="webhooks")) as allowed:
        answer = await allowed.post(path, content=body, headers=headers)
        assert answer.json()["body"] == body.decode()


@pytest.mark.parametrize(
    "body", [b'{"webhook": null}', b'{"input": "a webhook"}', b"{webhook", b'"webhook"']
)
async def test_a_word_is_no_webhook(client: httpx.AsyncClient, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await client.post("/runs", content=body, headers=headers)
    assert answer.json()["body"] == body.decode()


async def test_a_body_that_no_parser_takes_is_refused(client: httpx.AsyncClient) -> None:
    body = b"[" * 100_000 + b'"webhook"'
    headers = {"Content-Type": "application/json"}
    assert "nested" in said(await client.post("/runs", content=body, headers=headers), 400)


async def test_the_server_may_call_itself() -> None:
    """As MCP does, under the name that nobody else may use."""
    rules = Rules(token=TOKEN)
    async with connected(rules, base="http://api", root="/noauth") as itself:
        assert (await itself.get("/threads")).status_code == 200
    async with connected(rules, base="http://127.0.0.1", root="/noauthority") as other:
        said(await other.get("/noauthority/threads"), 401)


PREFLIGHT = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "content-type,x-auth-scheme",
    "Access-Control-Request-Private-Network": "true",
}


async def test_studio_crosses_only_where_it_is_named() -> None:
    studio = EVIL | {"Origin": STUDIO}
    async with connected(Rules(token=TOKEN, origins=STUDIO)) as client:
        answer = await client.options("/threads", headers=studio | PREFLIGHT)
        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == STUDIO
        assert answer.headers["Access-Control-Allow-Private-Network"] == "true"
        assert "x-auth-scheme" in answer.headers["Access-Control-Allow-Headers"]
        refused = await client.get("/threads", headers=studio)
        assert refused.status_code == 401
        assert refused.headers["Access-Control-Allow-Origin"] == STUDIO  # Its page says why.
        answer = await client.get(f"/token/{TOKEN}/threads", headers=studio)
        assert answer.headers["Access-Control-Allow-Origin"] == STUDIO
        said(await client.options("/threads", headers=EVIL | PREFLIGHT), 403)
        said(await client.get("/threads", headers=EVIL), 403)
    async with connected(Rules(token=TOKEN)) as client:
        said(await client.options("/threads", headers=studio | PREFLIGHT), 403)


def test_a_websocket_is_checked_as_a_request_is() -> None:
    address = f"{URL.replace('http', 'ws')}/threads/1/stream/events"
    rules = Rules(token=TOKEN, allow="event_streaming")
    with TestClient(app(rules), base_url=URL, client=("127.0.0.1", 9)) as client:
        with client.websocket_connect(address, headers={"x-api-key": TOKEN}) as open_one:
            assert open_one.receive_text() == "welcome"
        page = {"Origin": URL, "x-api-key": TOKEN}
        with client.websocket_connect(address, headers=page) as open_one:
            assert open_one.receive_text() == "welcome"
        for headers, status in (
            ({"x-api-key": TOKEN, "Origin": "http://evil.test"}, 403),
            ({"x-api-key": TOKEN, "Host": "evil.test"}, 400),
            ({}, 401),
        ):
            with (
                pytest.raises(WebSocketDenialResponse) as denied,
                client.websocket_connect(address, headers=headers),
            ):
                pass
            said(denied.value, status)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "ALLOW",
            "webhook",
            "allowed are a2a, crons, docs, event_streaming, metrics, store, ui, webhooks",
        ),
        ("ORIGINS", "*", "without a path"),
        ("ORIGINS", f"{STUDIO}/", "without a path"),
        ("HOSTS", "box:2024", "without a port"),
        ("HOSTS", "*", "without a port"),
        ("MAX_BYTES", "many", "whole numbers from 1"),
        ("MAX_BYTES", "0", "whole numbers from 1"),
        ("TOKEN", "short", "16 or more"),
        ("TOKEN", "spaces are not allowed here", "16 or more"),
    ],
)
def test_rules_that_are_none_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    monkeypatch.setenv(f"CRAG_SERVE_{name}", value)
    with pytest.raises(SettingsError, match=message) as refused:
        Rules()
    assert f"CRAG_SERVE_{name}" in str(refused.value)
    assert (value in str(refused.value)) == (name != "TOKEN")


def test_rules_come_from_the_environment_and_hide_the_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CRAG_SERVE_TOKEN", TOKEN)
    monkeypatch.setenv("CRAG_SERVE_ALLOW", "store, Crons")
    rules = Rules()
    assert rules.allow == {"store", "crons"}
    assert TOKEN not in repr(rules)


def test_langgraph_switches_off_what_is_not_allowed() -> None:
    off = settings_of_server()
    assert off.pop("app") == "crag.page.app:app"
    assert off.pop("cors") == {"allow_origins": []}
    features = ("a2a", "store", "ui", "webhooks")
    assert off == {f"disable_{feature}": True for feature in features}
    assert "disable_store" not in settings_of_server(frozenset({"store"}))


def configured(allow: str = "", origins: str = "", **entries: object) -> dict[str, str]:
    """Return what LangGraph's server hands on of a langgraph.json."""
    http = settings_of_server(frozenset(allow.split()), frozenset(origins.split()))
    entries = {"http": http, **entries}
    return {f"LANGGRAPH_{name.upper()}": json.dumps(value) for name, value in entries.items()}


def test_rules_that_langgraph_json_does_not_carry_out_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CRAG_SERVE_ALLOW", "store,crons")
    with pytest.raises(SettingsError, match=r"disable_store.*langgraph\.json.*remove"):
        rules_of_process(configured())
    assert rules_of_process(configured("store")).allow == {"store", "crons"}
    monkeypatch.delenv("CRAG_SERVE_ALLOW")
    monkeypatch.setenv("CRAG_SERVE_KEYS", KEYS)
    with pytest.raises(SettingsError, match=r'CRAG_SERVE_KEYS.*share their threads; add "auth"'):
        rules_of_process(configured())
    assert rules_of_process(configured(auth=AUTH)).login
    assert rules_of_process({}).login


async def test_the_sites_that_langgraph_json_names_are_those_of_the_guard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert rules_of_process(configured()).origins == frozenset()
    rules = rules_of_process(configured(origins=STUDIO))
    assert rules.origins == {STUDIO}
    async with connected(rules) as client:
        studio = EVIL | {"Origin": STUDIO}
        assert (await client.post("/threads", json={}, headers=studio)).status_code == 200
        for origin in (f"{STUDIO}.evil.test", "http://smith.langchain.com", "null"):
            said(await client.post("/threads", json={}, headers=EVIL | {"Origin": origin}), 403)
    monkeypatch.setenv("CRAG_SERVE_ORIGINS", "https://chat.example.org")
    both = {STUDIO, "https://chat.example.org"}
    assert rules_of_process(configured(origins=STUDIO)).origins == both


@pytest.mark.parametrize("origin", ["*", f"{STUDIO}/", "smith.langchain.com"])
def test_a_site_in_langgraph_json_that_is_none_is_refused(origin: str) -> None:
    with pytest.raises(SettingsError, match=r"allow_origins in langgraph\.json.*without a path"):
        rules_of_process(configured(origins=origin))


async def test_a_run_starts_in_no_graph_within_a_graph(client: httpx.AsyncClient) -> None:
    config = {"configurable": {"checkpoint_ns": "web:1"}}
    for sent in ({"config": config}, [{"config": {}}, {"config": config}]):
        refused = await client.post("/threads/1/runs/wait", json=sent, headers=PAGE)
        assert "which no run starts in: leave it out" in said(refused, 422)
    fine = {"config": {"configurable": {"checkpoint_ns": ""}}}
    assert (await client.post("/threads/1/runs", json=fine, headers=PAGE)).status_code == 200


async def test_a_client_that_leaves_while_it_sends_gets_no_further() -> None:
    heard: list[Any] = []

    async def behind(_: Any, receive: Any, __: Any) -> None:
        heard.append(await receive())

    parts = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    scope = {
        "type": "http", "method": "POST", "path": "/threads", "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:2024"), (b"content-type", b"application/json"),
                    (b"transfer-encoding", b"chunked")],
        "client": ("127.0.0.1", 9), "scheme": "http", "root_path": "",
    }  # fmt: skip

    async def receive() -> Any:
        return parts.pop(0)

    async def send(_: Any) -> None:
        raise AssertionError

    await Guard(behind, Rules())(scope, receive, send)
    assert heard == [{"type": "http.disconnect"}]


async def test_a_websocket_is_closed_where_the_server_cannot_answer_it() -> None:
    async def behind(*_: Any) -> None:
        raise AssertionError

    scope = {
        "type": "websocket", "path": "/threads/1/stream/events", "query_string": b"",
        "headers": [(b"host", b"evil.test"), (b"origin", b"http://evil.test")],
        "client": ("127.0.0.1", 9), "scheme": "ws", "root_path": "",
    }  # fmt: skip
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await Guard(behind, Rules())(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]

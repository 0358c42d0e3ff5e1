"""Who may ask what: every route as everybody there is, tokens of an issuer, and settings."""

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import jwt
import pytest
import typer
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from pydantic import SecretStr
from starlette.routing import BaseRoute, Mount, Route
from starlette.testclient import TestClient

from crag.cli.serve import settings_for
from crag.errors import SettingsError
from crag.runtime.environment import Environment
from crag.serve.access import HEADERS, PUBLIC
from crag.serve.app import create
from crag.serve.settings import ServeSettings
from crag.serve.storage import check_database
from tests.loopback import serving as looping
from tests.serve.conftest import graphs
from tests.serve.serving import KEYS, asked, serving

TOKEN = "the-token-of-this-server"  # noqa: S105 - of this test


class Asked(NamedTuple):
    """How a route is asked, and what its user and another one get."""

    own: int = 200
    other: int = 200
    json: Any = None


DECLARED = {
    ("GET", "/"): Asked(),
    ("GET", "/page/{path}"): Asked(),
    ("GET", "/ok"): Asked(),
    ("GET", "/api/graphs"): Asked(),
    ("POST", "/api/ask"): Asked(200, 404, {"question": "Why?", "thread": "THREAD"}),
    ("GET", "/api/threads"): Asked(),
    ("GET", "/api/threads/{thread}"): Asked(200, 404),
    ("DELETE", "/api/threads/{thread}"): Asked(204, 404),
    ("GET", "/api/documents"): Asked(),
    ("DELETE", "/api/documents"): Asked(404, 403),
    ("GET", "/api/documents/source"): Asked(404, 404),
    ("GET", "/api/documents/picture"): Asked(400, 400),
    ("PUT", "/api/documents/{name}"): Asked(415, 403),
    ("GET", "/v1/models"): Asked(),
    ("POST", "/v1/chat/completions"): Asked(400, 400),
    ("POST", "/mcp"): Asked(400, 400),
}
"""Ada may edit documents, and the thread is hers; Bob is the other one."""


def walked(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Yield method and path of each route."""
    for route in routes:
        if isinstance(route, Mount):
            yield "GET", f"{route.path}/{{path}}"
        elif isinstance(route, Route):
            yield from ((method, route.path) for method in (route.methods or {"GET"}) - {"HEAD"})
        else:
            raise TypeError(f"{route!r}: say here how it is asked")


def test_every_route_is_declared_here(tmp_path: Path) -> None:
    app = create(Environment(index=str(tmp_path / "index")), ServeSettings(), graphs())
    assert sorted(walked(app.routes)) == sorted(DECLARED)


def ask(
    client: httpx.Client, route: tuple[str, str], thread: str, headers: dict[str, str]
) -> httpx.Response:
    method, path = route
    path = path.replace("{thread}", thread).replace("{path}", "main.js").replace("{name}", "x.none")
    given = DECLARED[route].json
    body = {**given, "thread": thread} if given and "thread" in given else {}
    sent = {"json": body} if method in {"POST", "PUT"} else {}
    return client.request(method, path, headers=headers, **sent)


@pytest.fixture(scope="module")
def token_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(graphs(), tmp_path_factory.mktemp("token"), token=SecretStr(TOKEN)) as address:
        yield address


@pytest.mark.parametrize("server", ["open", "token", "keys"])
@pytest.mark.parametrize("route", DECLARED, ids=" ".join)
def test_routes_ask_who_it_is(
    route: tuple[str, str], server: str, request: pytest.FixtureRequest
) -> None:
    """Whatever the route, a caller gets what is declared; `langgraph dev` is in test_studio.py."""
    declared, is_public = DECLARED[route], PUBLIC.fullmatch(route[1].replace("{path}", "main.js"))
    named = {"open": "url", "token": "token_url", "keys": "users_url"}[server]
    own = {"Authorization": f"Bearer {KEYS['ada'] if server == 'keys' else TOKEN}"}
    stranger = {"open": declared.own, "token": 401, "keys": declared.other}[server]
    nobody = declared.own if server == "open" else 401
    with (
        httpx.Client(base_url=request.getfixturevalue(named), timeout=60) as client,
        httpx.Client(base_url=client.base_url, headers=own, timeout=60) as known,
    ):
        for caller, headers, status in [
            ("no key", {}, nobody),
            ("wrong key", {"x-api-key": "key-of-nobody-known"}, nobody),
            ("another user", {"x-api-key": KEYS["bob"]}, stranger),
            ("its user", own, declared.own),
        ]:
            thread = asked(known, "Who wrote it?")[0][1]
            reply = ask(client, route, thread, headers)
            assert reply.status_code == (200 if is_public else status), (caller, reply.text)
            if status in {401, 403, 404} and not is_public:
                assert set(reply.json()) == {"error", "message"}, caller
            if status == 401 and not is_public:
                problem = "this server asks for a key" if not headers else "the key is wrong"
                assert reply.json()["message"].startswith(f"{problem}: send it as "), caller


@pytest.mark.parametrize(
    ("headers", "status", "told"),
    [
        ({}, 200, ""),
        ({"Host": "localhost:9"}, 200, ""),
        ({"Host": "127.0.0.1:9"}, 200, ""),
        ({"Host": "[::1]:9"}, 200, ""),
        ({"Host": "192.0.2.7"}, 200, ""),
        ({"Host": "rebound.example"}, 400, "'rebound.example' is no name"),
        ({"Host": "localhost.example"}, 400, "'localhost.example' is no name"),
        ({"Host": "["}, 400, "'[' is no name"),
        ({"Host": ""}, 400, "'' is no name"),
        ({"Origin": "https://evil.example"}, 403, "other sites (https://evil.example)"),
        ({"Origin": "null"}, 403, "other sites (null)"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "other sites (cross-site)"),
        ({"Sec-Fetch-Site": "same-site"}, 403, "other sites (same-site)"),
        ({"Sec-Fetch-Site": "same-origin"}, 200, ""),
        ({"Sec-Fetch-Site": "none"}, 200, ""),
        ({"X-Forwarded-For": "192.0.2.7"}, 403, "only: set CRAG_SERVE_TOKEN"),
        ({"Forwarded": "for=192.0.2.7"}, 403, "only: set CRAG_SERVE_TOKEN"),
    ],
)
def test_what_a_page_of_another_site_sends_is_refused(
    client: httpx.Client, headers: dict[str, str], status: int, told: str
) -> None:
    reply = client.get("/api/threads", headers=headers)
    assert reply.status_code == status
    assert reply.is_success or told in reply.json()["message"]


def test_a_link_of_another_site_opens_the_page_and_no_more(client: httpx.Client) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document"}  # fmt: skip
    assert client.get("/", headers=link).status_code == 200
    assert client.get("/", headers=link | {"Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert client.get("/api/threads", headers=link).status_code == 403
    assert client.post("/", headers=link).status_code == 403


def test_a_database_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    off = "postgresql://me:hush@127.0.0.1:1/x"
    for database, told in (tmp_path, "unable"), ("mysql://me:hush@x", "opened"), (off, "failed"):
        with pytest.raises(SettingsError, match=told) as refused:
            check_database(str(database))
        assert "hush" not in str(refused.value)


def test_a_body_is_limited_whether_its_length_is_told_or_not(tmp_path: Path) -> None:
    with serving(graphs(), tmp_path, max_bytes=1000) as url:
        for content in (b"x" * 1800, iter([b"x" * 600] * 3)):
            assert httpx.post(f"{url}/api/ask", content=content).status_code == 413


def test_an_origin_that_is_named_may_ask(tmp_path: Path) -> None:
    origin, wanted = "https://chat.example", {"Access-Control-Request-Method": "POST"}
    with serving(graphs(), tmp_path, origins=frozenset({origin})) as url:
        allowed = httpx.options(f"{url}/api/ask", headers={"Origin": origin, **wanted})
        assert allowed.headers["access-control-allow-origin"] == origin
        assert httpx.get(f"{url}/api/threads", headers={"Origin": origin}).status_code == 200
        other = httpx.options(f"{url}/api/ask", headers={"Origin": "https://a.example", **wanted})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/page/none.js", "/api/threads", "/none"])
def test_every_response_keeps_browsers_from_loading_anything_else(
    client: httpx.Client, path: str
) -> None:
    headers = client.get(path).headers
    for name, value in HEADERS.items():
        assert headers[name] == value
    assert "unsafe" not in headers["content-security-policy"]
    is_page = path == "/" or path.startswith("/page")
    assert headers["cache-control"] == ("no-cache" if is_page else "no-store")


def test_what_nobody_foresaw_is_told_as_json_without_its_words(tmp_path: Path) -> None:
    app = create(Environment(index=str(tmp_path / "index")), ServeSettings(), graphs())
    here = {"client": ("127.0.0.1", 9), "raise_server_exceptions": False}
    with TestClient(app, "http://localhost", **here) as client:
        kept, app.state.conversations = app.state.conversations, "broken"
        reply = client.get("/api/threads")
        app.state.conversations = kept
    assert (reply.status_code, reply.json()["error"]) == (500, "internal_server_error")
    assert "its log says why" in reply.json()["message"]


def test_without_a_token_other_machines_are_refused(tmp_path: Path) -> None:
    app = create(Environment(index=str(tmp_path / "index")), ServeSettings(), graphs())
    reply = TestClient(app, "http://localhost", client=("192.0.2.7", 9)).get("/api/threads")
    assert reply.status_code == 403


ADA, BOB = "key-of-ada-0123456789", "key-of-bob-0123456789"
ISSUER, AUDIENCE = "https://login.example.org/", "crag"
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def oidc_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server whose issuer publishes its key on this machine."""
    key = json.loads(RSAAlgorithm.to_jwk(PRIVATE.public_key())) | {"kid": "1", "use": "sig"}
    with looping(None) as issuer:
        issuer.body = {"keys": [key]}
        settings = {"oidc_issuer": ISSUER, "oidc_audience": AUDIENCE}
        folder, keys = tmp_path_factory.mktemp("oidc"), f"{issuer.url}/keys"
        with serving(graphs(), folder, oidc_keys=keys, **settings) as url:
            yield url


def token(key: Any = PRIVATE, algorithm: str = "RS256", **changed: object) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 300} | changed
    given = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(given, key, algorithm, headers={"kid": "1"})


def test_a_token_of_the_issuer_tells_whose_conversations_these_are(oidc_url: str) -> None:
    with httpx.Client(base_url=oidc_url, timeout=60) as client:
        client.headers["Authorization"] = f"Bearer {token()}"
        thread = asked(client, "Who wrote it?")[0][1]
        assert [one["thread"] for one in client.get("/api/threads").json()] == [thread]
        client.headers["Authorization"] = f"Bearer {token(sub='bob')}"
        assert client.get("/api/threads").json() == []
        assert client.get(f"/api/threads/{thread}").status_code == 404
        assert not client.get("/api/documents").json()["edits"]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"key": OTHER}, "Signature verification failed"),
        ({"aud": "another"}, "Audience doesn't match"),
        ({"iss": "https://evil.test/"}, "Invalid issuer"),
        ({"exp": time.time() - 300}, "expired"),
        ({"exp": None}, '"exp" claim'),
        ({"sub": None}, '"sub" claim'),
        ({"key": "", "algorithm": "none"}, "not allowed"),
        ({"key": "0" * 32, "algorithm": "HS256"}, "not allowed"),
    ],
)
def test_any_other_token_tells_nobody(oidc_url: str, changed: dict[str, Any], told: str) -> None:
    reply = httpx.get(f"{oidc_url}/api/threads", headers={"x-api-key": token(**changed)})
    assert reply.status_code == 401
    assert told in reply.json()["message"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"token": "short"}, "16 or more"),
        ({"max_bytes": "many"}, "'CRAG_SERVE_MAX_BYTES' cannot be 'many'"),
        ({"keys": "ada"}, "name=key"),
        ({"keys": "ada=short"}, "16 or more"),
        ({"keys": f"ada={ADA},bob={ADA}"}, "once"),
        ({"keys": f"oidc:ada={ADA}"}, "no colon"),
        ({"oidc_issuer": ISSUER}, "_AUDIENCE, and _KEYS"),
        ({"oidc_issuer": ISSUER, "oidc_audience": "a", "oidc_keys": "http://a.test/"}, "https"),
    ],
)
def test_settings_that_cannot_be_carried_out_are_refused(
    settings: dict[str, str], told: str
) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        ServeSettings(**settings)  # type: ignore[arg-type]
    assert ADA not in str(refused.value)


def test_settings_are_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CRAG_SERVE_KEYS", f"ada={ADA}, bob={BOB}")
    monkeypatch.setenv("CRAG_SERVE_EDITORS", "ada, ")
    (tmp_path / ".env").write_text("CRAG_SERVE_HOSTS=box.example.org\n")
    settings = ServeSettings()
    assert settings.secrets == {ADA: "ada", BOB: "bob"}
    assert settings.hosts == {"box.example.org"}
    assert (settings.may_edit("ada"), settings.may_edit("bob")) == (True, False)


def test_a_server_for_others_always_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    here, everywhere = "127.0.0.1", "0.0.0.0"  # noqa: S104
    for host in (here, everywhere):
        settings = settings_for(host, token=True)
        assert settings.token
        assert len(settings.token.get_secret_value()) > 20
    assert settings_for(here, token=False).token is None
    with pytest.raises(typer.BadParameter, match="--no-token is for this machine alone"):
        settings_for(everywhere, token=False)
    monkeypatch.setenv("CRAG_SERVE_TOKEN", ADA)
    known = settings_for(everywhere, token=True).token
    assert known
    assert known.get_secret_value() == ADA
    monkeypatch.delenv("CRAG_SERVE_TOKEN")
    monkeypatch.setenv("CRAG_SERVE_KEYS", f"ada={ADA}")
    assert settings_for(everywhere, token=True).token is None  # Users have keys of their own.

"""Login: who gets in with what, and that nobody gets to the threads of somebody else."""

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from langgraph_sdk import Auth
from langgraph_sdk.errors import AuthenticationError, NotFoundError

from crag.cli.address import Address, ServerError
from crag.cli.serve import rules_for
from crag.errors import SettingsError
from crag.page import login
from crag.page.login import Login, UnknownUserError
from crag.page.rules import Rules
from tests.loopback import Loopback
from tests.loopback import serving as looping
from tests.production.conftest import Serving

ADA, BOB = "key-of-ada-0123456789", "key-of-bob-0123456789"
KEYS = f"ada={ADA}, bob={BOB}"
ISSUER, AUDIENCE = "https://login.example.org/", "crag"
PRIVATE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def issuer() -> Iterator[Loopback]:
    """An issuer that publishes its key."""
    key = json.loads(RSAAlgorithm.to_jwk(PRIVATE.public_key())) | {"kid": "1", "use": "sig"}
    with looping(None) as running:
        running.body = {"keys": [key]}
        yield running


@pytest.fixture
def oidc(issuer: Loopback) -> Login:
    rules = Rules(oidc_issuer=ISSUER, oidc_audience=AUDIENCE, oidc_keys=f"{issuer.url}/keys")
    return Login(rules)


def token(key: Any = PRIVATE, algorithm: str = "RS256", **changed: object) -> str:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": time.time() + 300} | changed
    given = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(given, key, algorithm, headers={"kid": "1"})


@pytest.mark.parametrize("header", [{"x-api-key": ADA}, {"authorization": f"Bearer {ADA}"}])
async def test_a_key_tells_whose_it_is(header: dict[str, str]) -> None:
    assert await Login(Rules(keys=KEYS)).user(header) == "key:ada"


@pytest.mark.parametrize("key", ["", "key-of-ada", f"{ADA}x", KEYS, "ada"])
async def test_a_wrong_key_tells_nobody(key: str) -> None:
    with pytest.raises(UnknownUserError, match="send your key as x-api-key"):
        await Login(Rules(keys=KEYS)).user({"x-api-key": key})


async def test_a_token_of_the_issuer_tells_whose_it_is(oidc: Login) -> None:
    assert await oidc.user({"authorization": f"Bearer {token()}"}) == "oidc:ada"
    assert await oidc.user({"x-api-key": token(sub="bob")}) == "oidc:bob"


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
async def test_any_other_token_tells_nobody(
    oidc: Login, changed: dict[str, Any], told: str
) -> None:
    with pytest.raises(UnknownUserError, match=told):
        await oidc.user({"authorization": f"Bearer {token(**changed)}"})


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"keys": "ada"}, "name=key"),
        ({"keys": "ada=short"}, "16 or more"),
        ({"keys": f"ada={ADA},ada={BOB}"}, "once"),
        ({"keys": f"ada={ADA},bob={ADA}"}, "once"),
        ({"oidc_issuer": ISSUER}, "_AUDIENCE and _KEYS"),
        ({"oidc_issuer": ISSUER, "oidc_audience": "a", "oidc_keys": "http://a.test/"}, "https"),
    ],
)
def test_a_login_that_is_none_is_refused(rules: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as refused:
        Rules(**rules)  # type: ignore[arg-type]
    assert ADA not in str(refused.value)


async def test_nobody_reaches_what_is_somebody_elses(serving: Serving) -> None:
    async with serving(rules=Rules(keys=KEYS)) as ada:
        http = ada.http.client
        with pytest.raises(AuthenticationError):
            await ada.threads.create()
        assert (await http.get("/ok")).status_code == (await http.get("/")).status_code == 200
        http.headers["x-api-key"] = ADA
        thread = (await ada.threads.create())["thread_id"]
        run = await ada.runs.create(thread, "crag", input={"question": "kettle"})
        await ada.runs.join(thread, run["run_id"])
        http.headers["x-api-key"] = BOB
        bob, where = ada, f"/threads/{thread}"
        assert await bob.threads.search() == []
        for method, path, body in (
            ("GET", where, None), ("PATCH", where, {"metadata": {}}), ("DELETE", where, None),
            ("POST", f"{where}/copy", None), ("GET", f"{where}/state", None),
            ("POST", f"{where}/state", {"values": {"answer": "mine"}}),
            ("GET", f"{where}/history", None), ("GET", f"{where}/runs", None),
            ("POST", f"{where}/runs", {"assistant_id": "crag", "input": {}}),
            ("POST", f"{where}/runs/wait", {"assistant_id": "crag", "input": {},
                                            "if_not_exists": "create"}),
            ("GET", f"{where}/runs/{run['run_id']}", None),
            ("GET", f"{where}/runs/{run['run_id']}/stream", None),
            ("GET", f"{where}/runs/{run['run_id']}/join", None),
            ("POST", f"{where}/runs/{run['run_id']}/cancel", None),
            ("DELETE", f"{where}/runs/{run['run_id']}", None),
        ):  # fmt: skip
            reply = await http.request(method, path, json=body)
            assert reply.status_code == httpx.codes.NOT_FOUND, (method, path)
        with pytest.raises(NotFoundError):
            await bob.threads.get(thread)
        http.headers["x-api-key"] = ADA
        assert (await ada.threads.get(thread))["values"]["answer"] == "KETTLE"  # type: ignore[index,call-overload]


def test_a_production_server_on_a_network_asks_who_users_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    everywhere = Address("0.0.0.0", 2024)  # noqa: S104
    with pytest.raises(ServerError, match=r"CRAG_SERVE_KEYS.*--one-user"):
        rules_for(everywhere, studio=False, token=True, production=True)
    forced = rules_for(everywhere, studio=False, token=True, production=True, one_user=True)
    assert forced.token
    monkeypatch.setenv("CRAG_SERVE_KEYS", KEYS)
    rules = rules_for(everywhere, studio=False, token=True, production=True)
    assert (rules.token, set(rules.users)) == (None, {"ada", "bob"})


async def test_the_hook_tells_langgraph_whom_the_guard_let_in() -> None:
    state = {"state": {"user": "key:bob"}}
    assert await login.authenticate(state) == {"identity": "key:bob"}
    for scope in ({}, {"state": {}}, {"state": {"user": ""}}):
        with pytest.raises(Auth.exceptions.HTTPException, match=r"crag\.page\.app:app") as caught:
            await login.authenticate(scope)
        assert caught.value.status_code == 401


def asking(action: str, user: str = "key:ada") -> Any:
    """Return how LangGraph tells its hook who wants to do something."""
    return SimpleNamespace(user=SimpleNamespace(identity=user), action=action)


@pytest.fixture
def _three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CRAG_SERVE_THREADS_PER_MINUTE", "3")
    login._pace.cache_clear()  # noqa: SLF001 - a process has one
    yield
    login._pace.cache_clear()  # noqa: SLF001


@pytest.mark.usefixtures("_three_threads")
async def test_the_hook_allows_own_threads_and_reading_graphs_and_nothing_else() -> None:
    new = {"metadata": {"title": "Kettles"}}
    assert await login.own_threads(asking("create"), new) == {"owner": "key:ada"}
    assert new == {"metadata": {"title": "Kettles", "owner": "key:ada"}}
    assert await login.read_assistants(asking("read"), {})
    assert await login.search_assistants(asking("search"), {})
    assert not await login.nothing_else(asking("delete"), {})


@pytest.mark.usefixtures("_three_threads")
async def test_the_hook_counts_every_way_to_make_a_thread_that_stays() -> None:
    stays: dict[str, Any] = {"if_not_exists": "create", "kwargs": {"temporary": False}}
    passes = {"if_not_exists": "create", "kwargs": {"temporary": True}}
    for action, value in (("create", {}), ("create_run", stays), ("create", {})):
        await login.own_threads(asking(action), dict(value))
    for action, value in (("create", {}), ("create_run", stays)):
        with pytest.raises(Auth.exceptions.HTTPException) as caught:
            await login.own_threads(asking(action), dict(value))
        assert caught.value.status_code == 429
    for action, value in (("create_run", passes), ("create_run", {}), ("read", {})):
        await login.own_threads(asking(action), dict(value))
    await login.own_threads(asking("create", "key:bob"), {})

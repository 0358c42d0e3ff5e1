"""Tokens of an issuer, and settings that are none."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
import typer
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from crag.cli.serve import settings_for
from crag.errors import SettingsError
from crag.serve.settings import ServeSettings
from tests.loopback import serving as looping
from tests.serve.conftest import graphs
from tests.serve.events import asked
from tests.serve.serving import serving

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
        ({"keys": "ada"}, "name=key"),
        ({"keys": "ada=short"}, "16 or more"),
        ({"keys": f"ada={ADA},bob={ADA}"}, "once"),
        ({"keys": f"oidc:ada={ADA}"}, "no colon"),
        ({"keys": f"ada={ADA}", "editors": "bob"}, "bob"),
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

"""What the server allows, to whom: the variables that begin with CRAG_SERVE_, for both servers."""

import json
import re
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Annotated, Any

from pydantic import SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from crag.errors import SettingsError

STUDIO = "https://smith.langchain.com"
"""The origin of LangGraph Studio."""
FEATURES = frozenset(
    {"a2a", "crons", "docs", "event_streaming", "metrics", "store", "ui", "webhooks"}
)
"""Disabled by default, because the page, Studio, the SDK and MCP do not need them."""

_NAME = re.compile(r"[a-z0-9._-]+")
_ORIGIN = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?")
_SAFE_KEYS = re.compile(r"https://|http://(127\.0\.0\.1|localhost|\[::1\])[:/]")
_TOKEN = re.compile(r"[\w.~-]{16,}", re.ASCII)
Names = Annotated[frozenset[str], NoDecode]


class Rules(BaseSettings):
    """What the guard allows; by default only this machine, without a token, and no other site."""

    model_config = SettingsConfigDict(
        env_prefix="CRAG_SERVE_", env_file=".env", extra="ignore", env_ignore_empty=True,
        frozen=True,
    )  # fmt: skip

    token: SecretStr | None = None
    """CRAG_SERVE_TOKEN: required from every client. Unset, only this machine is served."""
    keys: SecretStr | None = None
    """CRAG_SERVE_KEYS: comma-separated ``name=key`` of each user."""
    oidc_issuer: str | None = None
    """CRAG_SERVE_OIDC_ISSUER: who issues the tokens of users, as their claim `iss` has it."""
    oidc_audience: str | None = None
    """CRAG_SERVE_OIDC_AUDIENCE: whom the tokens are for, as their claim `aud` has it."""
    oidc_keys: str | None = None
    """CRAG_SERVE_OIDC_KEYS: URL of the issuer's public keys, `jwks_uri` in its configuration."""
    hosts: Names = frozenset()
    """CRAG_SERVE_HOSTS: comma-separated names of the server, besides the loopback names and the
    address of the connection."""
    origins: Names = frozenset()
    """CRAG_SERVE_ORIGINS: comma-separated origins whose pages may use the API, besides those of
    `cors.allow_origins` in langgraph.json."""
    allow: Names = frozenset()
    """CRAG_SERVE_ALLOW: comma-separated `FEATURES` to enable."""
    max_bytes: int = 16 * 2**20
    """CRAG_SERVE_MAX_BYTES: largest request body, in bytes."""
    uploads: Path | None = None
    """CRAG_SERVE_UPLOADS: folder of documents that were uploaded on the page. Unset, beside the
    index, where that is a folder."""
    editors: Names = frozenset()
    """CRAG_SERVE_EDITORS: comma-separated users who may add and remove documents where there is a
    login: names of CRAG_SERVE_KEYS, and ``oidc:SUBJECT`` for tokens. Unset, nobody may."""
    max_threads: int = 1000
    """CRAG_SERVE_MAX_THREADS: threads of each user that are kept; those of the same user that are
    unchanged for longest are deleted."""
    thread_days: int = 365
    """CRAG_SERVE_THREAD_DAYS: days after its last change on which a thread is deleted."""
    threads_per_minute: int = 100
    """CRAG_SERVE_THREADS_PER_MINUTE: threads that a user may make within a minute, where there is
    a login."""

    @field_validator("hosts", "origins", "allow", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return frozenset(name.strip().lower() for name in value.split(",") if name.strip())

    @field_validator("editors", mode="before")
    @classmethod
    def _of_users(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        names = (name.strip() for name in value.split(","))
        return frozenset(name if ":" in name else f"key:{name}" for name in names if name)

    @field_validator("max_bytes", "max_threads", "thread_days", "threads_per_minute", mode="before")
    @classmethod
    def _counted(cls, value: object, info: ValidationInfo) -> int:
        if not str(value).isdecimal() or int(str(value)) == 0:
            name = f"CRAG_SERVE_{str(info.field_name).upper()}"
            raise SettingsError(name, value, "allowed are whole numbers from 1")
        return int(str(value))

    @field_validator("token")
    @classmethod
    def _long(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not _TOKEN.fullmatch(value.get_secret_value()):
            allowed = "allowed are 16 or more letters, digits and the characters . _ ~ -"
            raise SettingsError("CRAG_SERVE_TOKEN", f"{len(value)} characters", allowed)
        return value

    @field_validator("keys")
    @classmethod
    def _paired(cls, value: SecretStr | None) -> SecretStr | None:
        pairs = _pairs(value)
        names, keys = [name for name, _ in pairs], [key for _, key in pairs]
        if not all(names) or not all(map(_TOKEN.fullmatch, keys)):
            allowed = (
                "allowed is name=key with commas, with 16 or more letters, digits and the "
                "characters . _ ~ - in each key"
            )
            raise SettingsError("CRAG_SERVE_KEYS", f"{len(pairs)} entries", allowed)
        if len(set(keys)) + len(set(names)) < 2 * len(pairs):
            allowed = "each name and each key may be there once"
            raise SettingsError("CRAG_SERVE_KEYS", f"{len(pairs)} entries", allowed)
        return value

    @model_validator(mode="after")
    def _whole_login(self) -> "Rules":
        told = (self.oidc_issuer, self.oidc_audience, self.oidc_keys)
        if any(told) and not all(told):
            allowed = "set CRAG_SERVE_OIDC_ISSUER, _AUDIENCE and _KEYS, or none of them"
            raise SettingsError("CRAG_SERVE_OIDC", "incomplete", allowed)
        if self.oidc_keys and not _SAFE_KEYS.match(self.oidc_keys):
            raise SettingsError(
                "CRAG_SERVE_OIDC_KEYS", self.oidc_keys, "allowed are https addresses"
            )
        return self

    @model_validator(mode="after")
    def _known_editors(self) -> "Rules":
        known = {f"key:{name}" for name in self.users}
        for editor in sorted(self.editors):
            is_subject = self.oidc_issuer is not None and editor.startswith("oidc:")
            if editor not in known and not is_subject:
                allowed = "allowed are names in CRAG_SERVE_KEYS, and oidc:SUBJECT with an issuer"
                raise SettingsError("CRAG_SERVE_EDITORS", editor.removeprefix("key:"), allowed)
        return self

    @property
    def users(self) -> dict[str, str]:
        """The key of each user."""
        return dict(_pairs(self.keys))

    @property
    def login(self) -> bool:
        """Whether each client says who it is, in the place of one token for all."""
        return self.keys is not None or self.oidc_issuer is not None

    def may_edit(self, user: str) -> bool:
        """Whether a user may add and remove documents; without a login, whoever is let in may."""
        return not self.login or user in self.editors

    @field_validator("hosts")
    @classmethod
    def _named(cls, value: frozenset[str]) -> frozenset[str]:
        for name in value:
            if not (_NAME.fullmatch(name) or address_in(name)):
                allowed = "allowed are names and addresses without a port, such as box.example.org"
                raise SettingsError("CRAG_SERVE_HOSTS", name, allowed)
        return value

    @field_validator("origins")
    @classmethod
    def _whole(cls, value: frozenset[str]) -> frozenset[str]:
        for origin in value:
            if not _ORIGIN.fullmatch(origin):
                allowed = f"allowed are origins without a path, such as {STUDIO}"
                raise SettingsError("CRAG_SERVE_ORIGINS", origin, allowed)
        return value

    @field_validator("allow")
    @classmethod
    def _known(cls, value: frozenset[str]) -> frozenset[str]:
        for name in sorted(value - FEATURES):
            raise SettingsError(
                "CRAG_SERVE_ALLOW", name, f"allowed are {', '.join(sorted(FEATURES))}"
            )
        return value


def _pairs(keys: SecretStr | None) -> list[tuple[str, str]]:
    parted = (pair.partition("=") for pair in keys.get_secret_value().split(",")) if keys else ()
    return [(name.strip(), key.strip()) for name, _, key in parted]


_SWITCHES = ("a2a", "store", "ui", "webhooks")


def settings_of_server(
    allow: frozenset[str] = frozenset(), origins: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return the `http` entry of a langgraph.json: what is switched off, and who else may ask.

    The list of origins is there even if it is empty: without one LangGraph's server accepts every
    site.
    """
    switches = {f"disable_{name}": True for name in _SWITCHES if name not in allow}
    return {"app": "crag.page.app:app", "cors": {"allow_origins": sorted(origins)}, **switches}


AUTH = {"path": "crag.page.login:auth", "disable_studio_auth": True}
"""The `auth` entry of a langgraph.json that keeps the threads of users apart."""


def rules_of_process(variables: Mapping[str, str]) -> Rules:
    """Return the rules of the environment, with the origins that langgraph.json names.

    LangGraph's server hands the entries of its langgraph.json on in the environment. Its list of
    origins is the guard's too, so that both let in the same sites.

    Raises:
        SettingsError: langgraph.json names something that is no origin, switches off what is
            allowed, or does not know of the login.
    """
    rules = Rules()
    if "LANGGRAPH_HTTP" not in variables:
        return rules
    http = json.loads(variables["LANGGRAPH_HTTP"])
    origins = frozenset((http.get("cors") or {}).get("allow_origins") or ())
    for origin in sorted(origins):
        if not _ORIGIN.fullmatch(origin):
            allowed = f"allowed are origins without a path, such as {STUDIO}"
            raise SettingsError("cors.allow_origins in langgraph.json", origin, allowed)
    _require_carried_out(rules, http, variables)
    return rules.model_copy(update={"origins": rules.origins | origins})


def _require_carried_out(
    rules: Rules, http: Mapping[str, Any], variables: Mapping[str, str]
) -> None:
    """Refuse rules that the langgraph.json of this process does not carry out."""
    for name in sorted(rules.allow.intersection(_SWITCHES)):
        if http.get(f"disable_{name}"):
            allowed = f'"disable_{name}" in langgraph.json switches it off; remove that line'
            raise SettingsError("CRAG_SERVE_ALLOW", name, allowed)
    if rules.login and not variables.get("LANGGRAPH_AUTH"):
        name = "CRAG_SERVE_KEYS" if rules.keys else "CRAG_SERVE_OIDC_ISSUER"
        allowed = f'users would share their threads; add "auth": {json.dumps(AUTH)} to it'
        raise SettingsError(name, "without `auth` in langgraph.json", allowed)


def address_in(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a text is, None if it is none."""
    try:
        return ip_address(text)
    except ValueError:
        return None

"""What the server allows, to whom: the variables that begin with CRAG_SERVE_."""

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from pydantic import SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from crag.errors import SettingsError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE_KEYS = re.compile(r"https://|http://(127\.0\.0\.1|localhost|\[::1\])[:/]")
_SECRET = re.compile(r"[\w.~-]{16,}", re.ASCII)
_SECRETS = "16 or more letters, digits and the characters . _ ~ -"
Names = Annotated[frozenset[str], NoDecode]


class ServeSettings(BaseSettings):
    """Who may use the server; by default only this machine, and no other site."""

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
    """CRAG_SERVE_HOSTS: comma-separated names of the server, besides addresses and localhost."""
    origins: Names = frozenset()
    """CRAG_SERVE_ORIGINS: comma-separated origins whose pages may use the API."""
    editors: Names = frozenset()
    """CRAG_SERVE_EDITORS: comma-separated users who may add and remove documents where users have
    keys: names of CRAG_SERVE_KEYS, and ``oidc:SUBJECT`` for tokens. Unset, nobody may."""
    max_bytes: int = 16 * 2**20
    """CRAG_SERVE_MAX_BYTES: largest request body, in bytes."""
    uploads: Path | None = None
    """CRAG_SERVE_UPLOADS: folder of uploaded documents; unset, beside the index if that is a
    folder."""
    database: str | None = None
    """CRAG_SERVE_DATABASE: address of a PostgreSQL database, or path of an SQLite file, that keeps
    the conversations; unset, an SQLite file beside the index."""

    @field_validator("hosts", "origins", "editors", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return frozenset(name.strip() for name in value.split(",") if name.strip())

    @field_validator("token")
    @classmethod
    def _long(cls, value: SecretStr | None) -> SecretStr | None:
        if value and not _SECRET.fullmatch(value.get_secret_value()):
            raise SettingsError(
                "CRAG_SERVE_TOKEN", f"{len(value)} characters", f"allowed are {_SECRETS}"
            )
        return value

    @model_validator(mode="after")
    def _users_are_known(self) -> "ServeSettings":
        names, keys = list(self.users), list(self.users.values())
        given = self.keys.get_secret_value().count("=") if self.keys else 0
        if len(set(keys)) != given or not all(names) or not all(map(_SECRET.fullmatch, keys)):
            allowed = f"allowed is name=key with commas, each once, with {_SECRETS} in each key"
            raise SettingsError("CRAG_SERVE_KEYS", f"{given} entries", allowed)
        issuer = (self.oidc_issuer, self.oidc_audience, self.oidc_keys)
        if any(issuer) and not all(issuer):
            allowed = "set CRAG_SERVE_OIDC_ISSUER, _AUDIENCE and _KEYS, or none of them"
            raise SettingsError("CRAG_SERVE_OIDC", "incomplete", allowed)
        if self.oidc_keys and not _SAFE_KEYS.match(self.oidc_keys):
            raise SettingsError(
                "CRAG_SERVE_OIDC_KEYS", self.oidc_keys, "allowed are https addresses"
            )
        for editor in sorted(self.editors):
            if editor not in names and not (self.oidc_issuer and editor.startswith("oidc:")):
                allowed = "allowed are names in CRAG_SERVE_KEYS, and oidc:SUBJECT with an issuer"
                raise SettingsError("CRAG_SERVE_EDITORS", editor, allowed)
        return self

    @property
    def users(self) -> dict[str, str]:
        """The key of each user."""
        pairs = self.keys.get_secret_value().split(",") if self.keys else ()
        return {
            name.strip(): key.strip() for name, _, key in (pair.partition("=") for pair in pairs)
        }

    @property
    def has_users(self) -> bool:
        """Whether each client says who it is, in the place of one token for all."""
        return self.keys is not None or self.oidc_issuer is not None

    def may_edit(self, user: str) -> bool:
        """Whether a user may add and remove documents; without users, whoever is let in may."""
        return not self.has_users or user.removeprefix("key:") in self.editors


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

"""What the server allows, to whom: the variables that begin with CRAG_SERVE_."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from crag.errors import SettingsError

_SECRET = re.compile(r"[\w.~-]{16,}", re.ASCII)
_SAFE = re.compile(r"https://|http://(127\.0\.0\.1|localhost)[:/]")
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
    """CRAG_SERVE_UPLOADS: folder of uploaded documents; unset, beside an index that is a folder."""
    database: str | None = None
    """CRAG_SERVE_DATABASE: address of a PostgreSQL database, or path of an SQLite file, that keeps
    the conversations; unset, an SQLite file beside the index."""

    @field_validator("hosts", "origins", "editors", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return frozenset(name.strip() for name in value.split(",") if name.strip())

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> "ServeSettings":
        secrets = self.secrets
        if self.keys and len(secrets) != self.keys.get_secret_value().count("=") + bool(self.token):
            raise SettingsError("CRAG_SERVE_KEYS", "…", "write name=key with commas, each key once")
        if not all(map(_SECRET.fullmatch, secrets)) or ":" in "".join(secrets.values()):
            allowed = "keys have 16 or more letters, digits, and . _ ~ -; names have no colon"
            raise SettingsError("CRAG_SERVE_TOKEN and CRAG_SERVE_KEYS", "…", allowed)
        issuer = (self.oidc_issuer, self.oidc_audience, self.oidc_keys)
        if any(issuer) and not (all(issuer) and _SAFE.match(str(self.oidc_keys))):
            allowed = "set CRAG_SERVE_OIDC_ISSUER, _AUDIENCE, and _KEYS to an https address"
            raise SettingsError("CRAG_SERVE_OIDC", issuer, allowed)
        if unknown := [one for one in self.editors if not one.startswith("oidc:")
                       and one not in secrets.values()]:  # fmt: skip
            allowed = "allowed are names in CRAG_SERVE_KEYS, and oidc:SUBJECT"
            raise SettingsError("CRAG_SERVE_EDITORS", unknown[0], allowed)
        return self

    @property
    def secrets(self) -> dict[str, str]:
        """The user of each key, and "" of the token, whose clients are one user."""
        pairs = self.keys.get_secret_value().split(",") if self.keys else []
        split = (pair.strip().partition("=") for pair in pairs)
        users = {key: name for name, _, key in split}
        return users | ({self.token.get_secret_value(): ""} if self.token else {})

    @property
    def has_users(self) -> bool:
        """Whether each client says who it is."""
        return self.keys is not None or self.oidc_issuer is not None

    def may_edit(self, user: str) -> bool:
        """Whether a user may add and remove documents; without users, whoever is let in may."""
        return not self.has_users or user in self.editors

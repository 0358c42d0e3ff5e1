"""What the server allows, to whom: the variables that begin with CRAG_SERVE_."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import NoDecode

from crag.errors import SettingsError
from crag.runtime.environment import Variables

_SECRET = re.compile(r"[\w.~-]{16,}", re.ASCII)
_SAFE = re.compile(r"https://|http://(127\.0\.0\.1|localhost)[:/]")


def _split(value: object) -> object:
    return {*map(str.strip, value.split(","))} - {""} if isinstance(value, str) else value


Names = Annotated[frozenset[str], NoDecode, BeforeValidator(_split)]


class ServeSettings(Variables, env_prefix="CRAG_SERVE_"):
    """Who may use the server; by default only this machine, and no other site."""

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
    max_bytes: int = Field(default=16 * 2**20, gt=0)
    """CRAG_SERVE_MAX_BYTES: largest request body, in bytes."""
    uploads: Path | None = None
    """CRAG_SERVE_UPLOADS: folder of uploaded documents; unset, one beside the index."""
    database: str | None = None
    """CRAG_SERVE_DATABASE: address of a PostgreSQL database, or path of an SQLite file, that keeps
    the conversations; unset, an SQLite file beside the index."""

    @model_validator(mode="after")
    def _can_be_carried_out(self) -> "ServeSettings":
        secrets, issuer = self.secrets, (self.oidc_issuer, self.oidc_audience, self.oidc_keys)
        pairs = self.keys.get_secret_value().count("=") if self.keys else 0
        for name, wrong, allowed in (
            ("KEYS", self.keys and len(secrets) != pairs + bool(self.token),
             "write name=key with commas, each key once"),
            ("TOKEN and CRAG_SERVE_KEYS",
             not all(map(_SECRET.fullmatch, secrets)) or ":" in "".join(secrets.values()),
             "keys have 16 or more letters, digits, and . _ ~ -; names have no colon"),
            ("OIDC", any(issuer) and not (all(issuer) and _SAFE.match(str(self.oidc_keys))),
             "set CRAG_SERVE_OIDC_ISSUER, _AUDIENCE, and _KEYS to an https address"),
        ):  # fmt: skip
            if wrong:
                raise SettingsError(f"CRAG_SERVE_{name}", "…", allowed)
        return self

    @property
    def secrets(self) -> dict[str, str]:
        """The user of each key, and "" of the token, whose clients are one user."""
        pairs = self.keys.get_secret_value().split(",") if self.keys else []
        users = {key: name for name, _, key in (pair.strip().partition("=") for pair in pairs)}
        return users | ({self.token.get_secret_value(): ""} if self.token else {})

    @property
    def has_users(self) -> bool:
        """Whether each client says who it is."""
        return self.keys is not None or self.oidc_issuer is not None

    def may_edit(self, user: str) -> bool:
        """Whether a user may add and remove documents; without users, whoever is let in may."""
        return not self.has_users or user in self.editors

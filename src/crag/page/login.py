"""Who asks: an API key or an OpenID Connect token, and LangGraph's hook for both servers.

`auth` is what LangGraph calls an auth handler; the `auth` entry of a langgraph.json names it as
`crag.page.login:auth`. The server of `crag.server` asks the same `Login`.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

from langgraph_sdk import Auth

from crag.errors import CragError
from crag.extras import require
from crag.page.guard import Rules

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""Those with a public key only: with a shared one, whoever can check a token could make one."""
_SECONDS, _LEEWAY = 5, 30


class UnknownUserError(CragError):
    """A request that does not say who asks, or says it wrongly."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"{detail}: send your key as x-api-key or as Authorization: Bearer")


class Login:
    """Tells who asks, by the rules of the server."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def user(self, headers: Mapping[str, str]) -> str:
        """Return the name of the user, or "" where no login is configured.

        A key's user is ``key:NAME``, a token's ``oidc:SUBJECT``, so that neither can be the other.

        Raises:
            UnknownUserError: the key or the token is missing or wrong, or has expired.
        """
        if not self._rules.login:
            return ""
        given = headers.get("x-api-key", "").strip()
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if not given and scheme.lower() == "bearer":
            given = credentials.strip()
        if not given:
            raise UnknownUserError("this server asks who you are")
        if name := self._of_key(given):
            return f"key:{name}"
        if self._rules.oidc_issuer and given.count(".") == 2:  # noqa: PLR2004 - parts of a JWT
            return f"oidc:{self._of_token(given)}"
        raise UnknownUserError("the key is wrong")

    def _of_key(self, given: str) -> str | None:
        digest, found = hashlib.sha256(given.encode()).digest(), None
        for name, key in self._rules.users.items():  # All of them, so that the time tells nothing.
            if secrets.compare_digest(digest, hashlib.sha256(key.encode()).digest()):
                found = name
        return found

    def _of_token(self, token: str) -> str:
        import jwt

        try:
            key = self._published.get_signing_key_from_jwt(token)
            claims = jwt.decode(
                token, key, algorithms=list(_ALGORITHMS), audience=self._rules.oidc_audience,
                issuer=self._rules.oidc_issuer, leeway=_LEEWAY,
                options={"require": ["exp", "sub", "iss", "aud"]},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise UnknownUserError(f"the token is not valid ({error})") from None
        return str(claims["sub"])

    @cached_property
    def _published(self) -> Any:
        """The issuer's public keys, fetched when they are needed and again when they change."""
        require("server", "login by OpenID Connect", "jwt", "cryptography")
        import jwt

        return jwt.PyJWKClient(str(self._rules.oidc_keys), timeout=_SECONDS)


@cache
def _login() -> Login:
    return Login(Rules())


auth = Auth()


@auth.authenticate
async def authenticate(headers: dict[bytes, bytes]) -> Auth.types.MinimalUserDict:
    """Tell LangGraph's server who asks."""
    text = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
    try:
        identity = await asyncio.to_thread(_login().user, text)
    except UnknownUserError as error:
        raise Auth.exceptions.HTTPException(status_code=401, detail=str(error)) from None
    return {"identity": identity}


@auth.on
async def nothing_else(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001
    """Refuse what is not allowed below: crons, the store, changed assistants."""
    return False


@auth.on.threads
async def own_threads(ctx: Auth.types.AuthContext, value: Any) -> dict[str, str]:
    """Let users see and change their own threads, and mark the new ones."""
    owner = {"owner": ctx.user.identity}
    value.setdefault("metadata", {}).update(owner)  # In place: the server keeps its own mapping.
    return owner


@auth.on.assistants.read
async def read_assistants(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001
    """Let all users see the graphs."""
    return True


@auth.on.assistants.search
async def search_assistants(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001
    """Let all users find the graphs."""
    return True

"""Who asks: an API key or an OpenID Connect token, and what LangGraph's server lets them do.

The guard of both servers asks `Login`. `auth` is what LangGraph calls an auth handler; the `auth`
entry of a langgraph.json names it as `crag.page.login:auth`.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property
from typing import Any

from langgraph_sdk import Auth

from crag.errors import CragError
from crag.extras import require
from crag.page.keeping import Pace, TooFastError
from crag.page.rules import Rules

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
        self._users = {_digest(key): f"key:{name}" for name, key in rules.users.items()}

    async def user(self, headers: Mapping[str, str]) -> str:
        """Return the name of the user.

        A key's user is ``key:NAME``, a token's ``oidc:SUBJECT``, so that neither can be the other.

        Raises:
            UnknownUserError: the key or the token is missing or wrong, or has expired.
        """
        given = headers.get("x-api-key", "").strip()
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if not given and scheme.lower() == "bearer":
            given = credentials.strip()
        if not given:
            raise UnknownUserError("this server asks who you are")
        if name := self._of_key(given):
            return name
        if self._rules.oidc_issuer and given.count(".") == 2:  # noqa: PLR2004 - parts of a JWT
            # The keys of the issuer may have to be fetched.
            waiting = asyncio.get_running_loop().run_in_executor(
                self._thread, self._of_token, given
            )
            return f"oidc:{await waiting}"
        raise UnknownUserError("the key is wrong")

    def _of_key(self, given: str) -> str | None:
        digest, found = _digest(given), None
        for known, name in self._users.items():  # All of them, so that the time tells nothing.
            if secrets.compare_digest(digest, known):
                found = name
        return found

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        """A thread of its own: an issuer that is slow keeps no node waiting."""
        return ThreadPoolExecutor(1, "crag-login")

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


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


@cache
def _pace() -> Pace:
    return Pace(Rules().threads_per_minute)


auth = Auth()


@auth.authenticate
async def authenticate(scope: dict[str, Any]) -> Auth.types.MinimalUserDict:
    """Tell LangGraph's server whom the guard let in."""
    user = scope.get("state", {}).get("user")
    if not user:
        detail = "nobody has asked who you are: langgraph.json must name crag.page.app:app in http"
        raise Auth.exceptions.HTTPException(status_code=401, detail=detail)
    return {"identity": user}


@auth.on
async def nothing_else(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001
    """Refuse what is not allowed below: crons, the store, changed assistants."""
    return False


@auth.on.threads
async def own_threads(ctx: Auth.types.AuthContext, value: Any) -> dict[str, str]:
    """Let users see and change their own threads, and mark the new ones."""
    owner = {"owner": ctx.user.identity}
    if ctx.action == "create" or _makes_thread(value):
        try:
            _pace().take(ctx.user.identity)
        except TooFastError as error:
            raise Auth.exceptions.HTTPException(status_code=429, detail=str(error)) from None
    value.setdefault("metadata", {}).update(owner)  # In place: the server keeps its own mapping.
    return owner


def _makes_thread(run: Mapping[str, Any]) -> bool:
    """Whether a run may make a thread that stays; one without a thread has one for itself."""
    stays = not (run.get("kwargs") or {}).get("temporary")
    return run.get("if_not_exists") == "create" and stays


@auth.on.assistants.read
async def read_assistants(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001
    """Let all users see the graphs."""
    return True


@auth.on.assistants.search
async def search_assistants(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001
    """Let all users find the graphs."""
    return True

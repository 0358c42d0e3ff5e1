"""Who may use the server: one middleware for every route, ours and those of `langgraph dev`.

A browser sends requests for any web page it shows, so every page that a user visits can reach a
server that listens only on their machine. What such a page cannot choose are the headers Host,
Origin and Sec-Fetch-*, and a token or key that it does not know. A path is public only if `PUBLIC`
names it: for every other one the middleware asks who it is, and leaves the answer in the state of
the request, as `user`.
"""

import asyncio
import hashlib
import secrets
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crag.serve.settings import LOOPBACK, ServeSettings, is_address

PUBLIC = ("/", "/page/{name}", "/ok")
"""Paths that everybody may read: the page, its files, and whether the server is there."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; "
    # Nothing in the page may parse text as HTML.
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}  # fmt: skip
"""What keeps a browser from loading or running anything else, on every response."""

_PUBLIC = tuple(compile_path(path)[0] for path in PUBLIC)
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-real-ip", "via"})
_SECRETS = frozenset({b"authorization", b"x-api-key"})
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Those with a public key only: with a shared one, whoever can check a token could make one."""


def access(settings: ServeSettings) -> list[Middleware]:
    """Return the middleware of every route."""
    cors = Middleware(
        CORSMiddleware, allow_origins=sorted(settings.origins), allow_methods=["*"],
        allow_headers=["*"], allow_private_network=True,
    )  # fmt: skip
    return [cors, Middleware(Access, settings)]


def refusal(path: str, status: int, message: str) -> JSONResponse:
    """Return an error as JSON; below /v1, where OpenAI's clients read it, in their form."""
    error: Any = HTTPStatus(status).phrase.lower().replace(" ", "_")
    if path.startswith("/v1/"):
        kind = "invalid_request_error" if status < 500 else "server_error"  # noqa: PLR2004
        error = {"message": message, "type": kind, "param": None, "code": error}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None  # noqa: PLR2004
    return JSONResponse({"error": error, "message": message}, status, headers)


class Access:
    """Passes on what the settings allow, and refuses everything else before anything reads it."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings, self._users = app, settings, Users(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan" or _calls_itself(scope):
            await self.app(scope, receive, send)
            return
        if scope["type"] == "websocket":  # Nothing here speaks it.
            await send({"type": "websocket.close", "code": 1008})
            return
        request, path = HTTPConnection(scope), path_of(scope)
        reads = scope["method"] in {"GET", "HEAD"}
        is_public = reads and any(public.fullmatch(path) for public in _PUBLIC)
        send = _hardened(send, "no-cache" if is_public else "no-store")
        try:
            self._check_site(request)
            self._check_length(int(request.headers.get("content-length", 0)))
            if not is_public:
                request.state.user = await self._user(request)
        except HTTPException as refused:
            response = refusal(path, refused.status_code, refused.detail)
            await response(scope, receive, send)
            return
        # A token goes no further, so no log, run or trace holds it.
        scope["headers"] = [pair for pair in scope["headers"] if pair[0].lower() not in _SECRETS]
        await self.app(scope, self._limited(receive), send)

    def _check_site(self, request: HTTPConnection) -> None:
        """Refuse names that lead to this machine, and requests of other sites' pages."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        name = _hostname(host)
        if not (name in LOOPBACK | self.settings.hosts or is_address(name)):
            raise HTTPException(
                400, f"{host[:100]!r} is not a name of this server: set CRAG_SERVE_HOSTS to it"
            )
        if origin in self.settings.origins:
            return
        site = request.headers.get("sec-fetch-site", "none")
        if origin not in {None, f"{request.scope['scheme']}://{host}"}:
            site = str(origin)[:100]
        elif site in {"same-origin", "none"} or _opens_page(request):
            return
        raise HTTPException(
            403,
            f"this server does not answer pages of other sites ({site}): use its own page, or "
            "name the site in CRAG_SERVE_ORIGINS",
        )

    async def _user(self, request: HTTPConnection) -> str:
        """Return who asks, "" where all are one user."""
        headers = request.headers
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        given = headers.get("x-api-key") or (credentials if scheme.lower() == "bearer" else "")
        given = given.strip()
        if self.settings.has_users:
            return await self._users.user(given)
        if token := self.settings.token:
            if secrets.compare_digest(given.encode(), token.get_secret_value().encode()):
                return ""
            how = "send it as x-api-key or as Authorization: Bearer"
            raise HTTPException(401, f"this server asks for its token: {how}")
        client = request.client.host if request.client else ""
        if client not in LOOPBACK or _FORWARDED.intersection(headers.keys()):
            raise HTTPException(
                403,
                "without a token this server answers its own machine only: set CRAG_SERVE_TOKEN, "
                "or start it with crag serve",
            )
        return ""

    def _check_length(self, length: int) -> None:
        if length > self.settings.max_bytes:
            most = f"a request may have {self.settings.max_bytes:,} bytes"
            raise HTTPException(413, f"{most}: send less, or raise CRAG_SERVE_MAX_BYTES")

    def _limited(self, receive: Receive) -> Receive:
        """Count a body while it is read, for clients that do not say how long it is."""
        length = 0

        async def receiving() -> Message:
            nonlocal length
            message = await receive()
            length += len(message.get("body", b""))
            self._check_length(length)
            return message

        return receiving


class Users:
    """Tells who asks: ``key:NAME`` or ``oidc:SUBJECT``, so that neither can be the other."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._keys = {_digest(key): f"key:{name}" for name, key in settings.users.items()}

    async def user(self, given: str) -> str:
        """Return the name of the user.

        Raises:
            HTTPException: the key or the token is missing or wrong, or has expired.
        """
        how = "send your key as x-api-key or as Authorization: Bearer"
        if not given:
            raise HTTPException(401, f"this server asks who you are: {how}")
        digest, name = _digest(given), None
        for known, user in self._keys.items():  # All of them, so that the time tells nothing.
            if secrets.compare_digest(digest, known):
                name = user
        if name:
            return name
        if self._settings.oidc_issuer is None:
            raise HTTPException(401, f"the key is wrong: {how}")
        # The keys of the issuer may have to be fetched.
        return f"oidc:{await asyncio.to_thread(self._subject, given)}"

    def _subject(self, token: str) -> str:
        import jwt

        try:
            claims = jwt.decode(
                token, self._published.get_signing_key_from_jwt(token), algorithms=_ALGORITHMS,
                audience=self._settings.oidc_audience, issuer=self._settings.oidc_issuer,
                leeway=30, options={"require": ["exp", "sub", "iss", "aud"]},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise HTTPException(401, f"the token is not valid ({error})") from None
        return str(claims["sub"])

    @cached_property
    def _published(self) -> Any:
        """The issuer's public keys, fetched when they are needed and again when they change."""
        import jwt

        return jwt.PyJWKClient(str(self._settings.oidc_keys), timeout=5)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def path_of(scope: Scope) -> str:
    """Return the path of a request within the server; never from the header Host."""
    return str(scope["path"]).removeprefix(scope.get("root_path", "")) or "/"


def _calls_itself(scope: Scope) -> bool:
    """Whether LangGraph's server calls itself, as for MCP; no client can set this mark of it."""
    return f"{scope.get('root_path', '')}/".startswith("/noauth/")


def _opens_page(request: HTTPConnection) -> bool:
    """Whether a browser opens the page in a tab, which links of other sites may do."""
    fetch = [request.headers.get(f"sec-fetch-{name}") for name in ("mode", "dest")]
    opens = (request.scope["method"], path_of(request.scope)) == ("GET", "/")
    return opens and fetch == ["navigate", "document"] and "origin" not in request.headers


def _hardened(send: Send, caching: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in {**HEADERS, "Cache-Control": caching}.items():
                headers.setdefault(name, value)
        await send(message)

    return sending

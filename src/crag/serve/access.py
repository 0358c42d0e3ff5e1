"""Who may use the server: one middleware for every route, ours and those of `langgraph dev`.

A browser sends requests for any web page it shows, so every page that a user visits can reach a
server that listens only on their machine. What such a page cannot choose are the headers Host,
Origin and Sec-Fetch-*, and a token or key that it does not know. A path is public only if `PUBLIC`
names it: for every other one the middleware asks who it is, and leaves the answer in the state of
the request, as `user`.
"""

import asyncio
import hashlib
import re
from functools import cached_property
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crag.serve.settings import ServeSettings

PUBLIC = re.compile(r"/|/page/[^/]+|/ok")
"""Paths that everybody may read: the page, its files, and whether the server is there."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    # Nothing in the page may parse text as HTML.
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""What keeps a browser from loading or running anything else, on every response."""
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-real-ip", "via"})
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA"]
"""Those with a public key only: with a shared one, whoever can check a token could make one."""
_HOW = "send it as x-api-key or as Authorization: Bearer"


def access(settings: ServeSettings) -> list[Middleware]:
    """Return the middleware of every route."""
    origins, every = sorted(settings.origins), ["*"]
    cors: Any = {"allow_methods": every, "allow_headers": every, "allow_private_network": True}
    return [
        Middleware(CORSMiddleware, allow_origins=origins, **cors),
        Middleware(Access, settings),
        Middleware(RequestBodyLimitMiddleware, max_body_size=settings.max_bytes),
    ]


def refusal(path: str, status: int, message: str) -> JSONResponse:
    """Return an error as JSON; below /v1, where OpenAI's clients read it, in their form."""
    code: Any = HTTPStatus(status).phrase.lower().replace(" ", "_")
    if path.startswith("/v1/"):
        code = {"message": message, "type": "invalid_request_error", "code": code, "param": None}
    return JSONResponse({"error": code, "message": message}, status)


class Access:
    """Passes on what the settings allow, and refuses everything else before anything reads it."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings
        # By their hashes, so that the time it takes to find one tells nothing of it.
        self._users = {_hash(secret): user for secret, user in settings.secrets.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # LangGraph's server calls itself for MCP; no client can set this mark of it.
        if scope["type"] == "lifespan" or scope.get("root_path", "").startswith("/noauth"):
            return await self.app(scope, receive, send)
        if scope["type"] == "websocket":  # Nothing here speaks it.
            return await send({"type": "websocket.close", "code": 1008})
        # Never `url.path`, which is made from the header Host.
        path = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        reads, request = scope["method"] in {"GET", "HEAD"}, HTTPConnection(scope)
        public = reads and PUBLIC.fullmatch(path)
        send = _hardened(send, "no-cache" if public else "no-store")
        try:
            self._check_site(request, opens_page=reads and path == "/")
            if not public:
                request.state.user = await self._user(request)
        except HTTPException as refused:
            return await refusal(path, refused.status_code, refused.detail)(scope, receive, send)
        # A token goes no further, so no log, run or trace holds it.
        secret = (b"authorization", b"x-api-key")
        scope["headers"] = [pair for pair in scope["headers"] if pair[0].lower() not in secret]
        return await self.app(scope, receive, send)

    def _check_site(self, request: HTTPConnection, *, opens_page: bool) -> None:
        """Refuse names that lead to this machine, and requests of other sites."""
        headers = request.headers
        host, origin = headers.get("host", ""), headers.get("origin")
        name = re.sub(r":\d+$", "", host).strip("[]")
        # Nobody makes an address lead here, as names of their own may.
        if name not in {"localhost", *self.settings.hosts} and not _address(name):
            message = f"{host[:100]!r} is no name of this server: set CRAG_SERVE_HOSTS to it"
            raise HTTPException(400, message)
        site = headers.get("sec-fetch-site", "none")
        opens_page &= headers.get("sec-fetch-mode") == "navigate"
        opens_page &= headers.get("sec-fetch-dest") == "document"
        if origin not in {None, f"{request.scope['scheme']}://{host}", *self.settings.origins} or (
            origin is None and site not in {"same-origin", "none"} and not opens_page
        ):
            raise HTTPException(
                403,
                f"this server does not answer pages of other sites ({str(origin or site)[:100]}): "
                "use its own page, or name the site in CRAG_SERVE_ORIGINS",
            )

    async def _user(self, request: HTTPConnection) -> str:
        """Return who asks, "" where all are one user."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        given = request.headers.get("x-api-key") or (given if scheme.lower() == "bearer" else "")
        user = self._users.get(_hash(given.strip()))
        if user is not None:
            return user
        if self.settings.oidc_issuer and given:  # Its keys may have to be fetched.
            return f"oidc:{await asyncio.to_thread(self._subject, given.strip())}"
        if self._users or self.settings.oidc_issuer:
            problem = "the key is wrong" if given else "this server asks for a key"
            raise HTTPException(401, f"{problem}: {_HOW}")
        client = _address(request.client.host if request.client else "")
        if not (client and client.is_loopback) or _FORWARDED.intersection(request.headers.keys()):
            allowed = "set CRAG_SERVE_TOKEN, or start it with crag serve"
            message = f"without a token this server answers its own machine only: {allowed}"
            raise HTTPException(403, message)
        return ""

    def _subject(self, token: str) -> str:
        import jwt

        try:
            claims = jwt.decode(
                token, self._published.get_signing_key_from_jwt(token), algorithms=_ALGORITHMS,
                audience=self.settings.oidc_audience, issuer=self.settings.oidc_issuer,
                leeway=30, options={"require": ["exp", "sub", "iss", "aud"]},
            )  # fmt: skip
        except jwt.PyJWTError as error:
            raise HTTPException(401, f"the token is not valid ({error}): {_HOW}") from None
        return str(claims["sub"])

    @cached_property
    def _published(self) -> Any:
        """The issuer's public keys, fetched when they are needed and again when they change."""
        import jwt

        return jwt.PyJWKClient(str(self.settings.oidc_keys), timeout=5)


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _hardened(send: Send, caching: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in {**HEADERS, "Cache-Control": caching}.items():
                headers.setdefault(name, value)
        await send(message)

    return sending

"""Who may use the server: the middleware of every route, LangGraph's and ours.

A browser sends requests for any web page it shows, so every page that a user visits can reach a
server that listens only on their machine. The guard relies on what such a page cannot choose: the
headers Host, Origin and Sec-Fetch-*, and a token or key that the page does not know.

A path is public only if `PUBLIC` names it. For every other one the guard asks for the token or,
where the rules have a login, who it is; what is behind it finds that user in the state of the
request.
"""

import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from starlette.routing import compile_path

from crag.page.login import Login, UnknownUserError
from crag.page.rules import Rules, address_in

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
PUBLIC = ("/", "/page/{name}", "/ok")
"""Paths that everybody may read: the page, its files, and whether the server is there."""

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?")
_WITHIN_PATH = re.compile(r"/token/([^/]*)(/.*)")
_PUBLIC = tuple(compile_path(path)[0] for path in PUBLIC)
_SECRETS = frozenset({b"authorization", b"x-api-key"})
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-real-ip", "via"})
_OWN = frozenset({"", "page", "about", "documents", "compare", "mcp", "v1"})
_SERVED = _OWN | {"assistants", "threads", "runs", "ok", "info"}
_FEATURES = tuple(
    (re.compile(rf"/(?:{pattern})(?:/|$)"), feature)
    for pattern, feature in (
        (r"runs/crons|threads/[^/]+/runs/crons", "crons"),
        (r"threads/[^/]+/(?:commands|stream/events)", "event_streaming"),
        (r"docs|openapi\.json", "docs"),
        (r"a2a|\.well-known/agent-card\.json", "a2a"),
        (r"metrics", "metrics"),
        (r"store", "store"),
        (r"ui", "ui"),
    )
)
"""What of LangGraph's server belongs to which member of `FEATURES`."""
_SHOWN = 100

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_logger = logging.getLogger(__name__)


class RefusedError(Exception):
    """A refused request: the HTTP status, what is wrong, and how to fix it."""

    def __init__(self, status: int, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(detail)


class Request(NamedTuple):
    """What the guard checks; names of headers and hosts are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    own: str
    """The origin of this server, as the client addresses it."""

    @property
    def origin(self) -> str | None:
        """The site that the request comes from, if a browser says so."""
        return self.headers.get("origin")

    @property
    def preflight(self) -> bool:
        """Whether this is a CORS preflight: it carries no token, and nothing behind reads it."""
        asks = "access-control-request-method" in self.headers
        return self.method == "OPTIONS" and asks and self.origin is not None

    @property
    def is_public(self) -> bool:
        """Whether everybody may ask this: it reads a path of `PUBLIC`."""
        reads = self.method in {"GET", "HEAD"}
        return reads and any(public.match(self.path) for public in _PUBLIC)

    @property
    def has_body(self) -> bool:
        """Whether there is a body."""
        return "transfer-encoding" in self.headers or self.length > 0

    @property
    def length(self) -> int:
        """The declared length of the body, in bytes."""
        return int(self.headers.get("content-length", 0))


class Guard:
    """Pass on what the rules allow, and refuse everything else before anything reads it."""

    def __init__(self, app: App, rules: Rules) -> None:
        self.app, self.rules, self._login = app, rules, Login(rules)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI request."""
        if scope["type"] not in {"http", "websocket"} or _calls_itself(scope):
            await self.app(scope, receive, send)
            return
        try:
            scope, request = await self._admitted(scope)
            receive = await self._read(request, receive)
        except RefusedError as refused:
            # Neither path nor query: they may hold a token.
            _logger.warning("Refused with %d: %s", refused.status, refused.detail)
            await _refuse(scope, receive, send, refused, self.rules.origins)
            return
        await self.app(scope, receive, _hardened(send))

    async def _admitted(self, scope: Scope) -> tuple[Scope, Request]:
        """Check everything but the body; return the scope with the user, and the request."""
        scope, known = self._without_token(scope)
        request = self._request(scope)
        self._check_site(request)
        if self._asks_nobody and not _of_this_machine(scope):
            raise RefusedError(
                403,
                "without a token this server answers its own machine only: set CRAG_SERVE_TOKEN, "
                "or start it with crag serve",
            )
        if not (request.preflight or (request.is_public and scope["type"] == "http")):
            user = await self._user(request, known=known)
            headers = [pair for pair in scope["headers"] if pair[0].lower() not in _SECRETS]
            state = {**scope.get("state", {}), "user": user}
            scope = {**scope, "headers": headers, "state": state}
            self._check_feature(request.path)
            self._check_documents(request, user)
        kind = "application/octet-stream" if _is_upload(request) else "application/json"
        if request.has_body and _media_type(request.headers) != kind:
            raise RefusedError(415, f"a body is read as {kind} only: set Content-Type")
        return scope, request

    def _without_token(self, scope: Scope) -> tuple[Scope, bool]:
        """Remove the token, so no log, run or trace contains it; return whether it was correct.

        It is in a header, in the query, or, for clients that only accept a base address, at the
        start of the path: `/token/…/threads`.
        """
        found, headers = [], []
        for name, value in scope["headers"]:
            text = value.decode("latin-1").strip()
            if name.lower() == b"authorization":
                text = text.partition(" ")[2].strip()
            if name.lower() in {b"authorization", b"x-api-key"} and self._is_token(text):
                found.append(text)
            else:
                headers.append((name, value))
        query, path, raw_path = scope["query_string"], scope["path"], scope.get("raw_path", b"")
        if b"token=" in query:
            pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
            found += [value for name, value in pairs if name == "token"]
            query = urlencode([pair for pair in pairs if pair[0] != "token"]).encode()
        if within := _WITHIN_PATH.fullmatch(path):
            found.append(within[1])
            path, raw_path = within[2], quote(within[2]).encode()
        changed = {"headers": headers, "query_string": query, "path": path, "raw_path": raw_path}
        return {**scope, **changed}, any(map(self._is_token, found))

    def _is_token(self, text: str) -> bool:
        token = self.rules.token
        return token is not None and secrets.compare_digest(
            text.encode(), token.get_secret_value().encode()
        )

    def _request(self, scope: Scope) -> Request:
        headers: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip()
            if name in headers and name in {"host", "origin", "content-type", "content-length"}:
                raise RefusedError(400, f"the header {name} comes twice: send it once")
            headers[name] = value
        host = headers.get("host", "").lower()
        found = _HOST.fullmatch(host)
        name = (found[1] or found[2]) if found else ""
        if name not in LOOPBACK | self.rules.hosts and name != (scope.get("server") or ("",))[0]:
            raise RefusedError(
                400,
                f"{host[:_SHOWN]!r} is not the host of this server: use 127.0.0.1, or name it in "
                "CRAG_SERVE_HOSTS",
            )
        scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
        path = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        return Request(scope.get("method", "GET"), path, headers, f"{scheme}://{host}")

    def _check_site(self, request: Request) -> None:
        """Refuse requests of other sites' pages; only browsers send an origin."""
        if request.origin in self.rules.origins:
            return
        site = request.headers.get("sec-fetch-site", "none")
        if request.origin not in {None, request.own}:
            site = str(request.origin)[:_SHOWN]
        elif site in {"same-origin", "none"} or _opens_page(request):
            return
        raise RefusedError(
            403,
            f"this server does not answer pages of other sites ({site!r}): use its own page, or "
            "name the site in CRAG_SERVE_ORIGINS; for Studio start crag serve with --studio",
        )

    def _check_feature(self, path: str) -> None:
        feature = _feature(path)
        if feature is None:
            raise RefusedError(404, "there is no such address on this server")
        if feature and feature not in self.rules.allow:
            raise RefusedError(403, _switched_off(feature))

    @property
    def _asks_nobody(self) -> bool:
        return self.rules.token is None and not self.rules.login

    async def _user(self, request: Request, *, known: bool) -> str:
        """Return who asks, "" where there is no login and all are one user."""
        if self.rules.login:
            try:
                return await self._login.user(request.headers)
            except UnknownUserError as error:
                raise RefusedError(401, str(error)) from None
        if not (known or self._asks_nobody):
            raise RefusedError(
                401,
                "the token is missing or wrong: open the address that crag serve printed, or send "
                "its token as x-api-key or as Authorization: Bearer",
            )
        return ""

    def _check_documents(self, request: Request, user: str) -> None:
        """Refuse what somebody may not do with the documents, which belong to the server.

        With a login every user may see them, as the answers do, and editors may change them.
        Without one, whoever has the token may do both, from wherever they are: also from outside
        the container that the server runs in. Where there is no token either, all who are let in
        are on this machine, but a proxy on it may ask for somebody else.
        """
        if not _manages(request.path):
            return
        if self._asks_nobody and _FORWARDED & request.headers.keys():
            raise RefusedError(
                403,
                "without a token documents are listed, shown and changed from the server's own "
                "machine only, and not through a proxy: set CRAG_SERVE_TOKEN, or start it with "
                "crag serve",
            )
        if request.method not in {"GET", "HEAD"} and not self.rules.may_edit(user):
            raise RefusedError(
                403,
                f"{user} may not add or remove documents: an editor may, whom the server's "
                "CRAG_SERVE_EDITORS names",
            )

    async def _read(self, request: Request, receive: Receive) -> Receive:
        """Read and check the body; return a `receive` that passes it to the application."""
        if not request.has_body:
            return receive
        if request.length > self.rules.max_bytes:
            raise self._too_large()
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] != "http.request":  # The client is gone.
                return _first(message, receive)
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self.rules.max_bytes:
                raise self._too_large()
        if "/runs" in request.path:
            _check_run(bytes(body), webhooks="webhooks" in self.rules.allow)
        return _first({"type": "http.request", "body": bytes(body), "more_body": False}, receive)

    def _too_large(self) -> RefusedError:
        """Return the error, made as it is raised: a local would hold the frame, with the body."""
        most = f"a body may have {self.rules.max_bytes:,} bytes"
        return RefusedError(413, f"{most}: send less, or raise CRAG_SERVE_MAX_BYTES")


def _calls_itself(scope: Scope) -> bool:
    """Whether the server calls itself, as for MCP; no client can set this mark of LangGraph."""
    return f"{scope.get('root_path', '')}/".startswith("/noauth/")


def _opens_page(request: Request) -> bool:
    """Whether a browser opens the page in a tab, which links of other sites may do."""
    headers = request.headers
    return (
        (request.method, request.path) == ("GET", "/")
        and request.origin is None
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _manages(path: str) -> bool:
    """Whether a path is one of the documents."""
    return path.strip("/").partition("/")[0] == "documents"


def _is_upload(request: Request) -> bool:
    """Whether the body is a file; browsers send its type to other origins only if allowed to."""
    return request.method == "PUT" and _manages(request.path)


def _feature(path: str) -> str | None:
    """Return the member of `FEATURES` of a path, "" if always enabled, None if unknown."""
    path = f"/{path.strip('/')}"
    for pattern, feature in _FEATURES:
        if pattern.match(path):
            return feature
    return "" if path.split("/")[1] in _SERVED else None


def _switched_off(feature: str) -> str:
    return f"{feature}: switched off on this server; CRAG_SERVE_ALLOW={feature} switches it on"


def _of_this_machine(scope: Scope) -> bool:
    address = address_in((scope.get("client") or ("",))[0])
    return address is not None and address.is_loopback


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _check_run(body: bytes, *, webhooks: bool) -> None:
    """Refuse a run whose result would go to a webhook, or that sets what only LangGraph may."""
    if not any(part in body for part in (b"webhook", b"checkpoint_ns", rb"\u")):
        return
    try:
        found = json.loads(body)
    except ValueError:
        return  # The server says what is wrong with it.
    except RecursionError:
        raise RefusedError(400, "the body is nested too deeply: send less") from None
    runs = found if isinstance(found, list) else [found]
    for run in (run for run in runs if isinstance(run, dict)):
        if not webhooks and run.get("webhook") is not None:
            raise RefusedError(403, _switched_off("webhooks"))
        config = run.get("config")
        options = config.get("configurable") if isinstance(config, dict) else None
        if isinstance(options, dict) and options.get("checkpoint_ns"):
            raise RefusedError(
                422,
                "config.configurable.checkpoint_ns names a graph within a graph, which no run "
                "starts in: leave it out",
            )


def _first(message: Message, receive: Receive) -> Receive:
    """Return a `receive` that yields `message` first."""
    waiting = [message]

    async def receiving() -> Message:
        return waiting.pop() if waiting else await receive()

    return receiving


def _hardened(send: Send) -> Send:
    """Keep other sites from loading a response as an image, script or style."""
    added = {b"x-content-type-options": b"nosniff", b"cross-origin-resource-policy": b"same-origin"}

    async def sending(message: Message) -> None:
        if message["type"].endswith("http.response.start"):  # Also one that refuses a WebSocket.
            headers = list(message.get("headers", []))
            there = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in added.items() if name not in there]
            message = {**message, "headers": headers}
        await send(message)

    return sending


async def _refuse(
    scope: Scope, receive: Receive, send: Send, refused: RefusedError, origins: Collection[str]
) -> None:
    """Send the reason as JSON, as LangGraph's own errors are, and below /v1 as OpenAI's too.

    A page of one of the `origins` may read it.
    """
    from starlette.responses import JSONResponse

    extensions = scope.get("extensions") or {}
    if scope["type"] == "websocket" and "websocket.http.response" not in extensions:
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = {"connection": "close"}  # The rest of the body is not read.
    if refused.status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    origin = dict(scope["headers"]).get(b"origin", b"").decode("latin-1")
    if origin in origins:
        headers |= {"access-control-allow-origin": origin, "vary": "Origin"}
    body: dict[str, Any] = {"detail": refused.detail}
    if "/v1/" in scope["path"]:  # OpenAI's clients show nothing else.
        body["error"] = {"message": refused.detail, "type": "invalid_request_error"}
    response = JSONResponse(body, refused.status, headers)
    await response(scope, receive, _hardened(send))

"""Who may use the server: the middleware of every route, and its rules.

A browser sends requests for any web page it shows, so every page that a user visits can reach a
server that listens only on their machine. The guard relies on what such a page cannot choose: the
headers Host, Origin and Sec-Fetch-*, and a token that the page does not know.
"""

import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from http import HTTPStatus
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from pydantic import SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from crag.errors import SettingsError

STUDIO = "https://smith.langchain.com"
"""The origin of LangGraph Studio."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
FEATURES = frozenset({"a2a", "crons", "docs", "metrics", "store", "ui", "webhooks"})
"""Disabled by default, because the page, Studio, the SDK and MCP do not need them."""

_NAME = re.compile(r"[a-z0-9._-]+")
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::\d{1,5})?")
_ORIGIN = re.compile(r"https?://(?:\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?")
_SAFE_KEYS = re.compile(r"https://|http://(127\.0\.0\.1|localhost|\[::1\])[:/]")
_TOKEN = re.compile(r"[\w.~-]{16,}", re.ASCII)
_WITHIN_PATH = re.compile(r"/token/([^/]*)(/.*)")
_OPEN = frozenset({"/", "/ok"})
_FORWARDED = frozenset({"forwarded", "x-forwarded-for", "x-real-ip", "via"})
_SERVED = frozenset(
    {"", "page", "documents", "assistants", "threads", "runs", "mcp", "ok", "info", "v1"}
)
_SHOWN = 100

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Names = Annotated[frozenset[str], NoDecode]

_logger = logging.getLogger(__name__)


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
    """CRAG_SERVE_ORIGINS: comma-separated origins whose pages may use the API."""
    allow: Names = frozenset()
    """CRAG_SERVE_ALLOW: comma-separated `FEATURES` to enable."""
    max_bytes: int = 16 * 2**20
    """CRAG_SERVE_MAX_BYTES: largest request body, in bytes."""
    uploads: Path | None = None
    """CRAG_SERVE_UPLOADS: folder of documents that were uploaded on the page. Unset, beside the
    index, where that is a folder."""
    max_threads: int = 1000
    """CRAG_SERVE_MAX_THREADS: threads that are kept; those unchanged for longest are deleted."""
    thread_days: int = 30
    """CRAG_SERVE_THREAD_DAYS: days after its last change on which a thread is deleted."""

    @field_validator("hosts", "origins", "allow", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return frozenset(name.strip().lower() for name in value.split(",") if name.strip())

    @field_validator("max_bytes", "max_threads", "thread_days", mode="before")
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
        pairs = (
            [pair.partition("=") for pair in value.get_secret_value().split(",")] if value else []
        )
        names = [name.strip() for name, _, _ in pairs]
        if value is None:
            return None
        if not all(names) or not all(_TOKEN.fullmatch(key.strip()) for _, _, key in pairs):
            allowed = (
                "allowed is name=key with commas, with 16 or more letters, digits and the "
                "characters . _ ~ - in each key"
            )
            raise SettingsError("CRAG_SERVE_KEYS", f"{len(pairs)} entries", allowed)
        if len({key.strip() for _, _, key in pairs}) + len(set(names)) < 2 * len(pairs):
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

    @property
    def users(self) -> dict[str, str]:
        """The key of each user."""
        pairs = self.keys.get_secret_value().split(",") if self.keys else []
        found = (pair.partition("=") for pair in pairs)
        return {name.strip(): key.strip() for name, _, key in found}

    @property
    def login(self) -> bool:
        """Whether each client says who it is, in the place of one token for all."""
        return self.keys is not None or self.oidc_issuer is not None

    @field_validator("hosts")
    @classmethod
    def _named(cls, value: frozenset[str]) -> frozenset[str]:
        for name in value:
            if not (_NAME.fullmatch(name) or _address(name)):
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


_SWITCHES = ("a2a", "store", "ui", "webhooks")


def settings_of_server(allow: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the `http` settings by which LangGraph's server switches off what is not allowed.

    CORS is left to the rules: without a list of origins, that server accepts every site.
    """
    switches = {f"disable_{name}": True for name in _SWITCHES if name not in allow}
    return {"cors": {"allow_origins": []}, **switches}


def require_switches(allow: frozenset[str], http: Mapping[str, Any]) -> None:
    """Refuse rules that allow what the `http` settings of LangGraph's server switch off.

    Raises:
        SettingsError: such a setting is there; the message names it.
    """
    for name in sorted(allow.intersection(_SWITCHES)):
        if http.get(f"disable_{name}"):
            allowed = f'"disable_{name}" in langgraph.json switches it off; remove that line'
            raise SettingsError("CRAG_SERVE_ALLOW", name, allowed)


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
        """Whether this is a CORS preflight, which carries no token."""
        return self.method == "OPTIONS" and "access-control-request-method" in self.headers

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
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI request."""
        if scope["type"] not in {"http", "websocket"} or _calls_itself(scope):
            await self.app(scope, receive, send)
            return
        try:
            scope, request = self._admitted(scope)
            receive = await self._read(request, receive)
        except RefusedError as refused:
            # Neither path nor query: they may hold a token.
            _logger.warning("Refused with %d: %s", refused.status, refused.detail)
            await _refuse(scope, receive, send, refused)
            return
        await self.app(scope, receive, _hardened(send))

    def _admitted(self, scope: Scope) -> tuple[Scope, Request]:
        """Check everything but the body; return the scope without the token, and the request."""
        scope, known = self._without_token(scope)
        request = self._request(scope)
        self._check_site(request)
        self._check_feature(request.path)
        self._check_client(request, scope, known=known)
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

    def _check_client(self, request: Request, scope: Scope, *, known: bool) -> None:
        if _manages(request.path) and not _is_direct(request, scope):
            raise RefusedError(
                403, "documents are listed, shown and changed from the server's own machine only"
            )
        if self.rules.login:
            return  # What follows asks who it is.
        if self.rules.token is None:
            if not _of_this_machine(scope):
                raise RefusedError(
                    403,
                    "without a token this server answers its own machine only: set "
                    "CRAG_SERVE_TOKEN, or start it with crag serve",
                )
        elif not (known or request.preflight or is_public(request.method, request.path)):
            raise RefusedError(
                401,
                "the token is missing or wrong: open the address that crag serve printed, or send "
                "its token as x-api-key or as Authorization: Bearer",
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
    root: str = scope.get("root_path", "")
    return root == "/noauth" or root.startswith("/noauth/")


def _opens_page(request: Request) -> bool:
    """Whether a browser opens the page in a tab, which links of other sites may do."""
    headers = request.headers
    return (
        (request.method, request.path) == ("GET", "/")
        and request.origin is None
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def is_public(method: str, path: str) -> bool:
    """Whether this is a file of the page or the health check, which everybody may see."""
    return method in {"GET", "HEAD"} and (path in _OPEN or path.startswith("/page/"))


def _manages(path: str) -> bool:
    """Whether a path is one of the documents."""
    return path.strip("/").partition("/")[0] == "documents"


def _is_upload(request: Request) -> bool:
    """Whether the body is a file; browsers send its type to other origins only if allowed to."""
    return request.method == "PUT" and _manages(request.path)


def _is_direct(request: Request, scope: Scope) -> bool:
    """Whether a request comes from this machine, and not through a proxy on it."""
    return _of_this_machine(scope) and not _FORWARDED & request.headers.keys()


def _feature(path: str) -> str | None:
    """Return the member of `FEATURES` of a path, "" if always enabled, None if unknown."""
    match path.strip("/").split("/"):
        case ["runs", "crons", *_] | ["threads", _, "runs", "crons", *_]:
            return "crons"
        case ["docs"] | ["openapi.json"]:
            return "docs"
        case ["a2a", *_] | [".well-known", "agent-card.json"]:
            return "a2a"
        case [("metrics" | "store" | "ui") as feature, *_]:
            return feature
        case [first, *_] if first in _SERVED:
            return ""
    return None


def _switched_off(feature: str) -> str:
    return f"{feature}: switched off on this server; CRAG_SERVE_ALLOW={feature} switches it on"


def _of_this_machine(scope: Scope) -> bool:
    address = _address((scope.get("client") or ("",))[0])
    return address is not None and address.is_loopback


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


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
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            there = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in added.items() if name not in there]
            message = {**message, "headers": headers}
        await send(message)

    return sending


async def _refuse(scope: Scope, receive: Receive, send: Send, refused: RefusedError) -> None:
    """Send the reason as JSON, in the format of LangGraph's own errors."""
    from starlette.responses import JSONResponse

    extensions = scope.get("extensions") or {}
    if scope["type"] == "websocket" and "websocket.http.response" not in extensions:
        await send({"type": "websocket.close", "code": 1008})
        return
    headers = {
        "x-content-type-options": "nosniff",
        "cross-origin-resource-policy": "same-origin",
        "connection": "close",  # The rest of the body is not read.
    }
    if refused.status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    response = JSONResponse({"detail": refused.detail}, refused.status, headers)
    await response(scope, receive, send)

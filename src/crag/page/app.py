"""The page at `/` and the guard of every route, as the `http.app` of a LangGraph server.

Everything it shows comes from the server's own API. This module serves only its files, read once,
with headers that keep the browser from loading or running anything else.
"""

import asyncio
import gzip
import hashlib
import os
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from crag.page import comparison, completions, documents, first_visit
from crag.page.guard import Guard
from crag.page.keeping import keeping
from crag.page.rules import Rules, rules_of_process

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",  # Nothing in the page may parse text as HTML.
    "trusted-types 'none'",
)
HEADERS = {
    "Content-Security-Policy": "; ".join(POLICY),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


class Asset:
    """One file of the page, as it is and compressed; `tag` changes with its content."""

    def __init__(self, file: Traversable) -> None:
        self.media_type = MEDIA_TYPES[f".{file.name.rpartition('.')[2]}"]
        self.content = file.read_bytes()
        self.compressed = gzip.compress(self.content, mtime=0)
        self.tag = f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'

    def response(self, request: Request) -> Response:
        """Return the file, compressed if the client accepts that, or 304 if it is unchanged."""
        headers = HEADERS | {"ETag": self.tag}
        # Proxies make the tag weak, and caches ask with several.
        if self.tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        content = self.content
        if "gzip" in request.headers.get("accept-encoding", ""):
            content, headers["Content-Encoding"] = self.compressed, "gzip"
        return Response(content, media_type=self.media_type, headers=headers)


ASSETS = {
    file.name: Asset(file)
    for file in files("crag.page").joinpath("static").iterdir()
    if f".{file.name.rpartition('.')[2]}" in MEDIA_TYPES
}


def page(request: Request) -> Response:
    """Return the page."""
    return ASSETS["index.html"].response(request)


def asset(request: Request) -> Response:
    """Return one of its files."""
    found = ASSETS.get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("there is no such file", status_code=404, headers=HEADERS)
    return found.response(request)


def middleware(rules: Rules) -> list[Middleware]:
    """Return the middleware of every route of the server, including LangGraph's own."""
    return [
        Middleware(Guard, rules),
        Middleware(
            CORSMiddleware,
            allow_origins=rules.origins,
            allow_methods=["*"],
            allow_headers=["*"],
            expose_headers=["content-location", "x-pagination-next", "x-pagination-total"],
            allow_private_network=True,
        ),
    ]


class _Mcp:
    """The tools at `/mcp`, whose package takes most of a second to import: at the first request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        tools = await asyncio.to_thread(import_module, "crag.page.mcp_tools")
        await tools.answer(scope, receive, send)


_rules = rules_of_process(os.environ)

app = Starlette(
    routes=[
        Route("/", page),
        Route("/page/{name}", asset),
        *documents.ROUTES,
        *first_visit.ROUTES,
        *comparison.ROUTES,
        *completions.routes,
        Route("/mcp", _Mcp(), methods=["POST"]),  # Nothing is sent without being asked for.
    ],
    middleware=middleware(_rules),
    lifespan=keeping(_rules),
)

"""The server as an ASGI application: the guard, the page, the API, and a share of the work."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from langgraph.errors import InvalidUpdateError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.errors import GoneError
from crag.page import comparison, first_visit
from crag.page.app import asset, middleware, page
from crag.page.rules import Rules
from crag.server.database import LOST, REFUSED, Database, Graphs
from crag.server.replies import RefusedRequestError
from crag.server.routes import Api
from crag.server.runs import Runs
from crag.server.settings import ServerSettings
from crag.server.worker import Worker
from crag.telemetry import Instruments, start

_AWAY = "The database does not answer: try again in a moment."
_NOT_STORED = "The database cannot store what you sent: {error}"


def create(
    settings: ServerSettings | None = None,
    graphs: Graphs | None = None,
    rules: Rules | None = None,
    instruments: Instruments | None = None,
) -> Starlette:
    """Build the application, by default from the environment, with the graphs of the package."""
    instruments = instruments or start()
    rules = rules or Rules()
    settings = settings or ServerSettings()  # pyright: ignore[reportCallIssue] - from the environment
    if graphs is None:
        from crag.graph import studio

        graphs = studio.graphs
    database = Database(settings)
    runs = Runs(database, settings, rules)
    worker, api = Worker(runs, graphs, instruments), Api(runs, graphs, rules)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        # Nodes that compute run in threads, as many as there are runs at once.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(settings.jobs * 2))
        async with database.opened(), worker.working():
            yield

    return Starlette(
        routes=[
            Route("/", page),
            Route("/page/{name}", asset),
            *first_visit.ROUTES,
            *comparison.ROUTES,
            *api.routes(),
        ],
        middleware=middleware(rules),
        exception_handlers={
            RefusedRequestError: _refused,
            # The router knows no such address, or no such method of it.
            HTTPException: _saying(404, "there is no such address on this server"),
            GoneError: _saying(404, "Thread not found."),
            InvalidUpdateError: _saying(422, "{error}"),
            **dict.fromkeys(LOST, _saying(503, _AWAY, **{"Retry-After": "5"})),
            **dict.fromkeys(REFUSED, _saying(400, _NOT_STORED)),
        },
        lifespan=lifespan,
    )


def _refused(_: Request, error: Any) -> Response:
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


def _saying(status: int, detail: str, **headers: str) -> Callable[[Request, Exception], Response]:
    """Return what replies to an error with `detail`, in which `{error}` is what it says."""
    return lambda _, error: JSONResponse({"detail": detail.format(error=error)}, status, headers)

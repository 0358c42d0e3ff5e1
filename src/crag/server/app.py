"""The server as an ASGI application: the guard, the page, the API, and a share of the work."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from math import ceil

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from crag.page import first_visit
from crag.page.app import asset, middleware, page
from crag.page.rules import Rules
from crag.server.assistants import Assistants
from crag.server.database import Database
from crag.server.refusals import RefusedRequestError
from crag.server.routes import Api
from crag.server.runs import Runs
from crag.server.settings import ServerSettings
from crag.server.streaming import Graph
from crag.server.worker import Worker
from crag.telemetry import Instruments, start

_AWAY = (psycopg.OperationalError, PoolTimeout, PoolClosed, TooManyRequests)
_AWAY_SECONDS = 5


def create(
    settings: ServerSettings | None = None,
    graphs: Mapping[str, Graph] | None = None,
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
    worker = Worker(database, runs, graphs, settings, instruments)
    api = Api(database, runs, graphs, Assistants(graphs), rules)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        # Nodes that compute run in threads, as many as there are runs at once.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(settings.jobs * 2))
        async with database.opened(), worker.working():
            yield

    return Starlette(
        routes=[Route("/", page), Route("/page/{name}", asset), *first_visit.ROUTES, *api.routes()],
        middleware=middleware(rules),
        exception_handlers={
            RefusedRequestError: _refused,
            404: _unknown,
            405: _unknown,
            **dict.fromkeys(_AWAY, _away),
        },
        lifespan=lifespan,
    )


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedRequestError)  # noqa: S101 - as registered
    headers = {"Retry-After": str(ceil(error.retry_after))} if error.retry_after else None
    return JSONResponse({"detail": error.detail}, error.status, headers)


def _unknown(_: Request, __: Exception) -> Response:
    return JSONResponse({"detail": "there is no such address on this server"}, 404)


def _away(_: Request, __: Exception) -> Response:
    detail = "The database does not answer: try again in a moment."
    return JSONResponse({"detail": detail}, 503, {"Retry-After": str(_AWAY_SECONDS)})

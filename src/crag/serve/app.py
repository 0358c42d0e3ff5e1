"""The application: its routes, and what it keeps while it runs."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from crag.errors import CragError, DocumentIndexError, QuestionError, SettingsError
from crag.factory.parts import choose_parts
from crag.generation.chat import DEFAULT_MODEL
from crag.graph_registry import GRAPHS, GraphEntry, built
from crag.plain import problem_of
from crag.runtime.environment import Environment
from crag.runtime.node_adapter import THREADS
from crag.serve import completions, documents, tools
from crag.serve.access import access, refusal
from crag.serve.conversations import HEARTBEAT, Ask, Conversations, Graph, as_json
from crag.serve.settings import ServeSettings
from crag.serve.storage import database_of, storage_in

STATIC = Path(str(files("crag.serve").joinpath("static")))


def create(
    environment: Environment | None = None,
    settings: ServeSettings | None = None,
    graphs: Mapping[str, Graph] | None = None,
) -> Starlette:
    """Return the application; what is not given is that of the environment.

    `graphs` are by their names, without a checkpointer.

    Raises:
        CragError: a part or a setting cannot be used.
    """
    environment, settings = environment or Environment(), settings or ServeSettings()
    graphs = graphs or built(choose_parts(environment))
    mcp, mcp_routes = tools.served(graphs)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS, "crag"))
        async with storage_in(database_of(environment, settings)) as storage, mcp.run():
            app.state.conversations = Conversations(graphs, storage)
            app.state.library = documents.Library.of(environment, settings)
            yield
            await app.state.conversations.close()

    app = Starlette(
        routes=[
            Route("/", page),
            Mount("/page", StaticFiles(directory=STATIC, follow_symlink=True)),
            Route("/ok", ok),
            Route("/api/graphs", offered),
            Route("/api/ask", ask, methods=["POST"]),
            Route("/api/threads", threads),
            Route("/api/threads/{thread}", thread, methods=["GET", "DELETE"]),
            *documents.ROUTES,
            *completions.ROUTES,
            *mcp_routes,
        ],
        middleware=[*access(settings), Middleware(GZipMiddleware)],
        exception_handlers=dict.fromkeys(_STATUSES, _refuse),
        lifespan=lifespan,
    )
    app.state.environment, app.state.settings, app.state.graphs = environment, settings, graphs
    return app


async def page(_: Request) -> Response:
    """Return the page."""
    return FileResponse(STATIC / "index.html")


async def ok(_: Request) -> Response:
    """Tell that the server is there."""
    return JSONResponse({"ok": True})


async def offered(request: Request) -> Response:
    """Return the graphs: name, drawing, JSON schema of the settings; and what is connected."""
    state = request.app.state
    graphs = []
    for name, graph in state.graphs.items():
        _, title, description = GRAPHS.get(name, GraphEntry("", name, ""))
        told = {"name": name, "title": title, "description": description}
        drawing, settings = graph.get_graph(xray=1).to_json(), graph.get_context_jsonschema()
        graphs.append({**told, "drawing": drawing, "settings": settings})
    return _json({"graphs": graphs, **connected(state.environment)})


def connected(environment: Environment) -> dict[str, str | None]:
    """Return the name of the model that writes the answers and of the web search, None without."""
    model = environment.model or (DEFAULT_MODEL if environment.openai_api_key else None)
    web = environment.service.title()
    return {"model": model and model.rpartition("/")[2], "web": None if web == "None" else web}


async def ask(request: Request) -> Response:
    """Answer a question as a stream of events; whoever closes it stops the run."""
    asked = Ask.model_validate_json(await request.body())
    events = await request.app.state.conversations.ask(request.state.user, asked)
    return EventSourceResponse(events, ping=HEARTBEAT)


async def threads(request: Request) -> Response:
    """Return the conversations of the user."""
    return _json(await request.app.state.conversations.threads(request.state.user))


async def thread(request: Request) -> Response:
    """Return the turns of a conversation, or delete it."""
    conversations, asked = request.app.state.conversations, request.path_params["thread"]
    if request.method == "DELETE":
        await conversations.delete(request.state.user, asked)
        return Response(status_code=204)
    return _json(await conversations.turns(request.state.user, asked))


def _json(value: object) -> Response:
    return Response(as_json(value), media_type="application/json")


async def _refuse(request: Request, error: Any) -> Response:
    """Answer an error as JSON; one may have a status of its own."""
    known = next(status for kind, status in _STATUSES.items() if isinstance(error, kind))
    message = problem_of(error) if isinstance(error, ValidationError) else str(error)
    told = getattr(error, "detail", message) if known else "the server failed: its log says why"
    return refusal(request.scope["path"], getattr(error, "status_code", known or 500), told)


_STATUSES: dict[type[Exception], int] = {
    ValidationError: 400, QuestionError: 400, SettingsError: 400, ClientDisconnect: 400,
    DocumentIndexError: 409, HTTPException: 500, CragError: 500, OSError: 500, Exception: 0,
}  # fmt: skip

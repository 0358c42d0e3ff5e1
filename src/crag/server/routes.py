"""The API: the routes of LangGraph's server that its SDK, its remote graphs and the page use."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any
from uuid import UUID

from langgraph.types import StateSnapshot
from pydantic import BaseModel, TypeAdapter
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from crag.errors import CragError
from crag.page.leaving import unless_left
from crag.page.rules import Rules
from crag.server import bodies
from crag.server.assistants import Assistants
from crag.server.database import Graph, Graphs, Row
from crag.server.replies import RefusedRequestError, decoded, encoded, not_found
from crag.server.runs import Runs
from crag.server.streaming import UNFIT, check_values, checkpoint_of, place, state_of, status_of
from crag.server.threads import Threads

_Asked = bodies.RunNew | bodies.Query
_PAGE_LIMIT, _LAST = 1000, 2**31 - 1
"""Most threads that are counted, and a place that no part of a stream has."""


class Api:
    """The API over a database and graphs."""

    def __init__(self, runs: Runs, graphs: Graphs, rules: Rules) -> None:
        self._database, self._runs, self._graphs, self._rules = runs.database, runs, graphs, rules
        self._assistants = Assistants(graphs)

    def routes(self) -> list[Route]:
        """Return all routes; a handler gets the request and what that says, read as a model."""
        table = (
            ("GET", "/ok", self._ok),
            ("GET", "/info", self._info),
            ("POST", "/assistants/search", self._search_assistants, bodies.AssistantSearch),
            ("POST", "/assistants/count", self._count_assistants, bodies.AssistantSearch),
            ("GET", "/assistants/{assistant}", self._get_assistant),
            ("GET", "/assistants/{assistant}/graph", self._draw, bodies.Query),
            ("GET", "/assistants/{assistant}/schemas", self._schemas),
            ("POST", "/threads", self._create_thread, bodies.ThreadNew),
            ("POST", "/threads/search", self._search_threads, bodies.ThreadSearch),
            ("POST", "/threads/count", self._count_threads, bodies.ThreadSearch),
            ("GET", "/threads/{thread}", self._get_thread),
            ("PATCH", "/threads/{thread}", self._update_thread, bodies.Described),
            ("DELETE", "/threads/{thread}", self._delete_thread),
            ("POST", "/threads/{thread}/copy", self._copy_thread),
            ("GET", "/threads/{thread}/state", self._get_state, bodies.Query),
            ("GET", "/threads/{thread}/state/{checkpoint}", self._get_state, bodies.Query),
            ("POST", "/threads/{thread}/state/checkpoint", self._get_state, bodies.Query),
            ("POST", "/threads/{thread}/state", self._update_state, bodies.StateChange),
            ("GET", "/threads/{thread}/history", self._get_history, bodies.Query),
            ("POST", "/threads/{thread}/history", self._get_history, bodies.Query),
            ("GET", "/threads/{thread}/runs", self._search_runs, bodies.Query),
            ("POST", "/threads/{thread}/runs", self._create_run, bodies.RunNew),
            ("POST", "/threads/{thread}/runs/stream", self._stream, bodies.RunNew),
            ("POST", "/threads/{thread}/runs/wait", self._wait, bodies.RunNew),
            ("POST", "/runs", self._create_run, bodies.RunNew),
            ("POST", "/runs/stream", self._stream, bodies.RunNew),
            ("POST", "/runs/wait", self._wait, bodies.RunNew),
            ("GET", "/threads/{thread}/runs/{run}", self._get_run),
            ("DELETE", "/threads/{thread}/runs/{run}", self._delete_run),
            ("POST", "/threads/{thread}/runs/{run}/cancel", self._cancel_run, bodies.Query),
            ("GET", "/threads/{thread}/runs/{run}/join", self._wait, bodies.Query),
            ("GET", "/threads/{thread}/runs/{run}/stream", self._stream, bodies.Query),
        )
        return [
            Route(path, _endpoint(handler, *read), methods=[method])
            for method, path, handler, *read in table
        ]

    async def _ok(self, _: Request) -> object:
        await self._database.rows("SELECT 1 AS one")
        return {"ok": True}

    async def _info(self, _: Request) -> object:
        versions = {"version": "corrective-rag", "langgraph_py_version": "langgraph"}
        told = {name: version(package) for name, package in versions.items()}
        return told | {"flags": {"assistants": True, "crons": False}}

    async def _search_assistants(self, _: Request, asked: bodies.AssistantSearch) -> object:
        return self._assistants.search(asked)[asked.offset :][: asked.limit]

    async def _count_assistants(self, _: Request, asked: bodies.AssistantSearch) -> object:
        return len(self._assistants.search(asked))

    async def _get_assistant(self, request: Request) -> object:
        return self._assistants.get(request.path_params["assistant"])

    async def _draw(self, request: Request, asked: bodies.Query) -> object:
        found = self._assistants.get(request.path_params["assistant"])
        return self._graphs[found["graph_id"]].get_graph(xray=asked.xray).to_json()

    async def _schemas(self, request: Request) -> object:
        found = self._assistants.get(request.path_params["assistant"])
        graph: Any = self._graphs[found["graph_id"]]
        return {
            "graph_id": found["graph_id"],
            "input_schema": graph.get_input_jsonschema(),
            "output_schema": graph.get_output_jsonschema(),
            "state_schema": TypeAdapter(graph.builder.state_schema).json_schema(),
            "config_schema": {},
            "context_schema": graph.get_context_jsonschema(),
        }

    async def _create_thread(self, request: Request, asked: bodies.ThreadNew) -> object:
        made = self._threads(request).create(asked.thread_id, asked.metadata, asked.if_exists)
        return _thread(await made)

    async def _search_threads(self, request: Request, asked: bodies.ThreadSearch) -> object:
        return [_thread(row) for row in await self._threads(request).search(**asked.model_dump())]

    async def _count_threads(self, request: Request, asked: bodies.ThreadSearch) -> object:
        every: dict[str, Any] = asked.model_dump() | {"limit": _PAGE_LIMIT, "offset": 0}
        return len(await self._threads(request).search(**every))

    async def _get_thread(self, request: Request) -> object:
        row = await self._thread(request)
        found = _thread(row)
        if graph := self._graph(row):
            state = await graph.aget_state(place(row["thread_id"]))
            asks = {task.id: task.interrupts for task in state.tasks if task.interrupts}
            found |= {"values": state.values or None, "interrupts": asks}
        return found

    async def _update_thread(self, request: Request, asked: bodies.Described) -> object:
        change = self._threads(request).update(_identifier(request, "thread"), asked.metadata)
        return _thread(await change)

    async def _delete_thread(self, request: Request) -> None:
        await self._threads(request).delete(_identifier(request, "thread"))

    async def _copy_thread(self, request: Request) -> object:
        return _thread(await self._threads(request).copy(_identifier(request, "thread")))

    async def _get_state(self, request: Request, asked: bodies.Query) -> object:
        row = await self._thread(request)
        if not (graph := self._graph(row)):  # Nothing has run on it.
            return state_of(StateSnapshot({}, (), place(row["thread_id"]), {}, None, None, (), ()))
        config = place(row["thread_id"], asked.checkpoint)
        return state_of(await graph.aget_state(config, subgraphs=asked.subgraphs))

    async def _update_state(self, request: Request, asked: bodies.StateChange) -> object:
        row = await self._thread(request)
        if not (graph := self._graph(row)):
            detail = "The thread has no graph yet: create it with a graph_id, or run one on it."
            raise RefusedRequestError(400, detail)
        try:
            check_values(graph, asked.values, "values")
            config = place(row["thread_id"], asked.checkpoint)
            written = await graph.aupdate_state(config, asked.values, asked.as_node)
        except (*UNFIT, CragError) as error:
            raise RefusedRequestError(400, str(error)) from error
        status = await status_of(graph, row["thread_id"])
        await self._threads(request).settle(row["thread_id"], status)
        checkpoint = checkpoint_of(written)
        return {"checkpoint": checkpoint, "configurable": checkpoint, **checkpoint}

    async def _get_history(self, request: Request, asked: bodies.Query) -> object:
        row = await self._thread(request)
        if not (graph := self._graph(row)):
            return []
        history = graph.aget_state_history(
            place(row["thread_id"], asked.checkpoint), limit=asked.limit, filter=asked.metadata,
            before=place(row["thread_id"], asked.before) if asked.before else None,
        )  # fmt: skip
        return [state_of(found) async for found in history]

    async def _search_runs(self, request: Request, asked: bodies.Query) -> object:
        thread_id = (await self._thread(request))["thread_id"]
        return [_run(row) for row in await self._runs.search(thread_id, **asked.model_dump())]

    async def _get_run(self, request: Request) -> object:
        return _run(await self._run(request))

    async def _delete_run(self, request: Request) -> None:
        await self._runs.delete(await self._run(request))

    async def _cancel_run(self, request: Request, asked: bodies.Query) -> object:
        run = await self._run(request)
        await self._runs.cancel(run, asked.action)
        if not asked.wait:
            return Response(status_code=202)
        await self._ended(run)
        return None

    async def _create_run(self, request: Request, asked: bodies.RunNew) -> object:
        run = await self._new_run(request, asked)
        return _reply(_run(run), _located(run))

    async def _wait(self, request: Request, asked: _Asked) -> object:
        run, cancels = await self._asked_run(request, asked)
        try:
            await unless_left(request, self._ended(run))
        except ClientDisconnect:
            if cancels:
                await self._runs.cancel(run, "interrupt")
            return Response(status_code=499)
        row = await self._runs.get(run["owner"], run["thread_id"], run["run_id"])
        error = row["error"] and decoded(row["error"])
        if row["status"] == "timeout":
            raise RefusedRequestError(503, error["message"], 2.0)
        if error:
            found = {"__error__": error}
        else:
            graph = self._graph(run) or not_found("Graph")
            state = await graph.aget_state(place(run["thread_id"]))
            asks = {"__interrupt__": state.interrupts} if state.interrupts else {}
            found = dict(state.values) | asks
        reply = _reply(found, _located(run))
        if run.get("temporary"):
            reply.background = BackgroundTask(self._threads(request).delete, run["thread_id"])
        return reply

    async def _stream(self, request: Request, asked: _Asked) -> object:
        run, cancels = await self._asked_run(request, asked)
        last = request.headers.get("last-event-id", "") if request.method == "GET" else ""
        after = int(last) if re.fullmatch(r"[0-9]{1,9}", last) else 0
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"} | _located(run)
        headers["Location"] = f"{headers['Content-Location']}/stream"
        parts = self._parts(run, after, cancels=cancels)
        return StreamingResponse(parts, headers=headers, media_type="text/event-stream")

    async def _asked_run(self, request: Request, asked: _Asked) -> tuple[Row, bool]:
        """Return the run, new or not, and whether it is cancelled when its client leaves."""
        if isinstance(asked, bodies.RunNew):
            return await self._new_run(request, asked), asked.on_disconnect == "cancel"
        return await self._run(request), asked.cancel_on_disconnect

    async def _new_run(self, request: Request, asked: bodies.RunNew) -> Row:
        assistant = self._assistants.get(asked.assistant_id)
        name = assistant["graph_id"]
        check_values(self._graphs[name], asked.input, "input")
        check_values(self._graphs[name], asked.command.get("update"), "command.update")
        threads, of = self._threads(request), {"graph_id": name}
        alone = "thread" not in request.path_params
        temporary = alone and asked.on_completion == "delete"
        if alone:
            thread_id = (await threads.create(None, of, temporary=temporary))["thread_id"]
        else:
            thread_id = _identifier(request, "thread")
            if asked.if_not_exists == "create":
                await threads.create(thread_id, of, "do_nothing")
        run = await self._runs.create(
            thread_id=thread_id, owner=threads.owner, assistant_id=assistant["assistant_id"],
            graph_id=name, request=asked.model_dump(), metadata=asked.metadata,
            strategy=asked.multitask_strategy,
        )  # fmt: skip
        return run | {"temporary": temporary}

    async def _ended(self, run: Row) -> None:
        async for _ in self._runs.follow(run["run_id"], _LAST):
            pass

    async def _parts(self, run: Row, after: int, *, cancels: bool) -> AsyncIterator[str]:
        try:
            async for found in self._runs.follow(run["run_id"], after):
                for part in found:
                    yield f"event: {part['event']}\ndata: {part['data']}\nid: {part['place']}\n\n"
                if not found:
                    yield ": heartbeat\n\n"
        except (asyncio.CancelledError, GeneratorExit):
            if cancels:
                await asyncio.shield(self._runs.cancel(run, "interrupt"))
            raise

    def _threads(self, request: Request) -> Threads:
        return Threads(self._database, request.state.user, self._rules.threads_per_minute)

    async def _thread(self, request: Request) -> Row:
        return await self._threads(request).get(_identifier(request, "thread"))

    async def _run(self, request: Request) -> Row:
        thread, run = _identifier(request, "thread"), _identifier(request, "run")
        return await self._runs.get(request.state.user, thread, run)

    def _graph(self, row: Row) -> Graph | None:
        """Return the graph of a thread or a run, for as long as the thread is its owner's."""
        if row["graph_id"] not in self._graphs:
            return None
        fence = Threads(self._database, row["owner"]).fence(row["thread_id"])
        return self._database.saving(self._graphs[row["graph_id"]], fence)


def _endpoint(
    handler: Callable[..., Awaitable[object]], *models: type[BaseModel]
) -> Callable[[Request], Awaitable[Response]]:
    """Return what reads a request as a handler takes it, and writes what it returns as JSON."""

    async def endpoint(request: Request) -> Response:
        found = await handler(request, *[await bodies.read(request, model) for model in models])
        if found is None:
            return Response(status_code=204)
        return found if isinstance(found, Response) else _reply(found)

    return endpoint


def _reply(value: object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encoded(value), headers=headers, media_type="application/json")


def _identifier(request: Request, what: str) -> UUID:
    text = request.path_params[what]
    try:
        return UUID(text)
    except ValueError:
        raise RefusedRequestError(422, f"Invalid {what} ID: {text[:100]!r} is no UUID.") from None


def _located(run: Row) -> dict[str, str]:
    return {"Content-Location": f"/threads/{run['thread_id']}/runs/{run['run_id']}"}


def _thread(row: Row) -> dict[str, Any]:
    names = ("thread_id", "status", "created_at", "updated_at")
    graph = {"graph_id": row["graph_id"]} if row["graph_id"] else {}
    return {name: row[name] for name in names} | {
        "metadata": row["metadata"] | graph, "config": {}, "values": None, "interrupts": {},
        "error": row["error"] and decoded(row["error"]),
    }  # fmt: skip


def _run(row: Row) -> dict[str, Any]:
    names = ("run_id", "thread_id", "assistant_id", "metadata", "status", "multitask_strategy",
             "created_at", "updated_at", "attempt")  # fmt: skip
    error = row["error"] and decoded(row["error"])
    return {name: row[name] for name in names} | {"kwargs": decoded(row["request"]), "error": error}

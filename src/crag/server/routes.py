"""The API: the routes of LangGraph's server that its SDK, its remote graphs and the page use."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.errors import InvalidUpdateError
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from crag.errors import CragError
from crag.page.rules import Rules
from crag.server import bodies
from crag.server.assistants import Assistants
from crag.server.bodies import Checkpoint, RunNew, body, query
from crag.server.database import Database, Row, bell, heard_within
from crag.server.encoding import decoded, encoded
from crag.server.refusals import RefusedRequestError, identifier, not_found
from crag.server.runs import FINISHED, NewRun, Runs
from crag.server.streaming import (
    UNFIT,
    Graph,
    check_values,
    checkpoint_of,
    interrupts_of,
    state_of,
    with_saver,
)
from crag.server.threads import Status, Threads

_PAGE_LIMIT = 1000
_NO_CONTENT = Response(status_code=204)


def reply(value: object, **headers: str) -> Response:
    """Return JSON."""
    return Response(encoded(value), headers=headers, media_type="application/json")


class Api:
    """The API over a database and graphs."""

    def __init__(
        self,
        database: Database,
        runs: Runs,
        graphs: Mapping[str, Graph],
        assistants: Assistants,
        rules: Rules,
    ) -> None:
        self._database, self._runs, self._rules = database, runs, rules
        self._graphs, self._assistants = graphs, assistants

    def routes(self) -> list[Route]:
        """Return all routes."""
        table = (
            ("GET", "/ok", self._ok),
            ("GET", "/info", self._info),
            ("POST", "/assistants/search", self._search_assistants),
            ("POST", "/assistants/count", self._count_assistants),
            ("GET", "/assistants/{assistant}", self._get_assistant),
            ("GET", "/assistants/{assistant}/graph", self._draw),
            ("GET", "/assistants/{assistant}/schemas", self._schemas),
            ("POST", "/threads", self._create_thread),
            ("POST", "/threads/search", self._search_threads),
            ("POST", "/threads/count", self._count_threads),
            ("GET", "/threads/{thread}", self._get_thread),
            ("PATCH", "/threads/{thread}", self._update_thread),
            ("DELETE", "/threads/{thread}", self._delete_thread),
            ("POST", "/threads/{thread}/copy", self._copy_thread),
            ("GET", "/threads/{thread}/state", self._get_state),
            ("GET", "/threads/{thread}/state/{checkpoint}", self._get_state),
            ("POST", "/threads/{thread}/state/checkpoint", self._get_state_at),
            ("POST", "/threads/{thread}/state", self._update_state),
            ("GET", "/threads/{thread}/history", self._get_history),
            ("POST", "/threads/{thread}/history", self._get_history),
            ("GET", "/threads/{thread}/runs", self._search_runs),
            ("POST", "/threads/{thread}/runs", self._create_run),
            ("POST", "/threads/{thread}/runs/stream", self._stream_new),
            ("POST", "/threads/{thread}/runs/wait", self._wait_new),
            ("POST", "/runs", self._create_run),
            ("POST", "/runs/stream", self._stream_new),
            ("POST", "/runs/wait", self._wait_new),
            ("GET", "/threads/{thread}/runs/{run}", self._get_run),
            ("DELETE", "/threads/{thread}/runs/{run}", self._delete_run),
            ("POST", "/threads/{thread}/runs/{run}/cancel", self._cancel_run),
            ("GET", "/threads/{thread}/runs/{run}/join", self._join_run),
            ("GET", "/threads/{thread}/runs/{run}/stream", self._join_stream),
        )
        return [Route(path, handler, methods=[method]) for method, path, handler in table]

    async def _ok(self, _: Request) -> Response:
        await self._database.rows("SELECT 1 AS one")
        return reply({"ok": True})

    async def _info(self, _: Request) -> Response:
        from importlib.metadata import version

        return reply(
            {"version": version("corrective-rag"), "langgraph_py_version": version("langgraph"),
             "flags": {"assistants": True, "crons": False}}
        )  # fmt: skip

    # Assistants

    async def _search_assistants(self, request: Request) -> Response:
        asked = await body(request, bodies.AssistantSearch)
        found = self._assistants.search(asked.graph_id)
        wanted = (asked.metadata or {}).items()
        found = [one for one in found if wanted <= one["metadata"].items()]
        return reply(found[asked.offset : asked.offset + asked.limit])

    async def _count_assistants(self, request: Request) -> Response:
        asked = await body(request, bodies.AssistantSearch)
        return reply(len(self._assistants.search(asked.graph_id)))

    async def _get_assistant(self, request: Request) -> Response:
        return reply(self._assistants.get(request.path_params["assistant"]))

    async def _draw(self, request: Request) -> Response:
        xray = query(request).xray
        return reply(self._assistants.drawn(request.path_params["assistant"], xray=xray))

    async def _schemas(self, request: Request) -> Response:
        return reply(self._assistants.schemas(request.path_params["assistant"]))

    # Threads

    async def _create_thread(self, request: Request) -> Response:
        asked = await body(request, bodies.ThreadNew)
        made = await self._threads(request).create(
            asked.thread_id, asked.metadata, if_exists=asked.if_exists or "raise"
        )
        return reply(_thread(made))

    async def _search_threads(self, request: Request) -> Response:
        return reply([_thread(row) for row in await self._searched(request)])

    async def _count_threads(self, request: Request) -> Response:
        return reply(len(await self._searched(request, limit=_PAGE_LIMIT)))

    async def _searched(self, request: Request, limit: int | None = None) -> list[Row]:
        asked = await body(request, bodies.ThreadSearch)
        return await self._threads(request).search(
            asked.metadata or {}, asked.status, asked.ids,
            limit=limit or asked.limit, offset=0 if limit else asked.offset,
            by=asked.sort_by or "created_at", ascending=asked.sort_order == "asc",
        )  # fmt: skip

    async def _get_thread(self, request: Request) -> Response:
        row = await self._thread(request)
        found = _thread(row)
        if row["graph_id"] in self._graphs:
            state = await self._graph(row).aget_state(_config(row["thread_id"]))
            asked = {task.id: interrupts_of(task.interrupts) for task in state.tasks}
            found |= {
                "values": state.values or None,
                "interrupts": {task: one for task, one in asked.items() if one},
            }
        return reply(found)

    async def _update_thread(self, request: Request) -> Response:
        asked = await body(request, bodies.ThreadChange)
        thread = identifier(request.path_params["thread"], "thread")
        return reply(_thread(await self._threads(request).update(thread, asked.metadata)))

    async def _delete_thread(self, request: Request) -> Response:
        await self._threads(request).delete(identifier(request.path_params["thread"], "thread"))
        return _NO_CONTENT

    async def _copy_thread(self, request: Request) -> Response:
        thread = identifier(request.path_params["thread"], "thread")
        return reply(_thread(await self._threads(request).copy(thread)))

    # States

    async def _get_state(self, request: Request) -> Response:
        asked = query(request)
        at = Checkpoint(checkpoint_id=asked.checkpoint)
        return await self._state(request, at, subgraphs=asked.subgraphs)

    async def _get_state_at(self, request: Request) -> Response:
        asked = await body(request, bodies.StateAt)
        return await self._state(request, asked.checkpoint, subgraphs=asked.subgraphs)

    async def _state(self, request: Request, at: Checkpoint, *, subgraphs: bool) -> Response:
        row = await self._thread(request)
        if row["graph_id"] not in self._graphs:
            return reply(_nothing(row))
        config = _config(row["thread_id"], at)
        found = await self._graph(row).aget_state(config, subgraphs=subgraphs)
        return reply(state_of(found))

    async def _update_state(self, request: Request) -> Response:
        asked = await body(request, bodies.StateChange)
        row = await self._thread(request)
        if row["graph_id"] not in self._graphs:
            detail = "The thread has no graph yet: create it with a graph_id, or run one on it."
            raise RefusedRequestError(400, detail)
        at = asked.checkpoint or Checkpoint(checkpoint_id=asked.checkpoint_id)
        graph, config = self._graph(row), _config(row["thread_id"], at)
        try:
            check_values(graph, asked.values, "values")
            written = await graph.aupdate_state(config, asked.values, asked.as_node)
        except (*UNFIT, CragError) as error:
            raise RefusedRequestError(400, str(error)) from error
        found = await graph.aget_state(_config(row["thread_id"]))
        status: Status = "interrupted" if found.next else "idle"
        await self._threads(request).settle(row["thread_id"], status, row["graph_id"])
        checkpoint = checkpoint_of(written)
        return reply({"checkpoint": checkpoint, "configurable": checkpoint, **(checkpoint or {})})

    async def _get_history(self, request: Request) -> Response:
        if request.method == "GET":
            told = query(request)
            asked = bodies.HistoryQuery(limit=told.limit, before=told.before)
        else:
            asked = await body(request, bodies.HistoryQuery)
        row = await self._thread(request)
        if row["graph_id"] not in self._graphs:
            return reply([])
        before = asked.before
        if isinstance(before, str):
            before = Checkpoint(checkpoint_id=before)
        history = self._graph(row).aget_state_history(
            _config(row["thread_id"], asked.checkpoint), limit=asked.limit, filter=asked.metadata,
            before=_config(row["thread_id"], before) if before else None,
        )  # fmt: skip
        return reply([state_of(found) async for found in history])

    # Runs

    async def _search_runs(self, request: Request) -> Response:
        row, asked = await self._thread(request), query(request)
        found = await self._runs.search(
            request.state.user, row["thread_id"], asked.status,
            limit=asked.limit, offset=asked.offset,
        )  # fmt: skip
        return reply([_run(one) for one in found])

    async def _get_run(self, request: Request) -> Response:
        return reply(_run(await self._run(request)))

    async def _delete_run(self, request: Request) -> Response:
        await self._runs.delete(await self._run(request))
        return _NO_CONTENT

    async def _cancel_run(self, request: Request) -> Response:
        run, asked = await self._run(request), query(request)
        await self._runs.cancel(run, asked.action)
        if asked.wait:
            await self._ended(run["run_id"])
            return _NO_CONTENT
        return Response(status_code=202)

    async def _create_run(self, request: Request) -> Response:
        _, run = await self._new_run(request)
        return reply(_run(run), **_located(run))

    async def _wait_new(self, request: Request) -> Response:
        asked, run = await self._new_run(request)
        found = await self._waited(request, run, cancels=asked.on_disconnect == "cancel")
        alone = "thread" not in request.path_params and asked.on_completion == "delete"
        if alone and found.status_code == HTTPStatus.OK:
            found.background = BackgroundTask(self._threads(request).delete, run["thread_id"])
        return found

    async def _stream_new(self, request: Request) -> Response:
        asked, run = await self._new_run(request)
        return self._streamed(run, 0, cancels=asked.on_disconnect == "cancel")

    async def _join_run(self, request: Request) -> Response:
        asked = query(request)
        run = await self._run(request)
        return await self._waited(request, run, cancels=asked.cancel_on_disconnect)

    async def _join_stream(self, request: Request) -> Response:
        run, last = await self._run(request), request.headers.get("last-event-id", "0")
        asked = query(request)
        place = int(last) if re.fullmatch(r"[0-9]{1,9}", last) else 0
        return self._streamed(run, place, cancels=asked.cancel_on_disconnect)

    async def _new_run(self, request: Request) -> tuple[RunNew, Row]:
        asked = await body(request, RunNew)
        assistant, graph = self._assistants.resolve(asked.assistant_id)
        updated = (asked.command or {}).get("update")
        try:
            check_values(self._graphs[graph], asked.input, "input")
            check_values(self._graphs[graph], updated, "command.update")
        except InvalidUpdateError as error:
            raise RefusedRequestError(422, str(error)) from error
        threads, named = self._threads(request), request.path_params.get("thread")
        if named is None:
            keep = asked.on_completion == "keep"
            thread_id = (await threads.create(graph_id=graph, temporary=not keep))["thread_id"]
        else:
            thread_id = identifier(named, "thread")
            if asked.if_not_exists == "create":
                await threads.create(thread_id, graph_id=graph, if_exists="do_nothing")
        at = asked.checkpoint or Checkpoint(checkpoint_id=asked.checkpoint_id)
        kept = asked.model_dump(
            include={
                "input", "command", "config", "context", "stream_mode", "stream_subgraphs",
                "interrupt_before", "interrupt_after", "durability",
            }
        )  # fmt: skip
        new = NewRun(
            thread_id=thread_id, owner=threads.owner, assistant_id=assistant, graph_id=graph,
            request=kept | {"checkpoint": at.model_dump(exclude_none=True)
                            if at.checkpoint_id else None},
            metadata=asked.metadata or {}, strategy=asked.multitask_strategy,
        )  # fmt: skip
        return asked, await self._runs.create(new)

    async def _ended(self, run_id: UUID) -> str | None:
        """Wait for the end of a run; return its status, None if it was removed."""
        with self._database.bells.heard(bell(run_id)) as rung:
            while True:
                status, _ = await self._runs.after(run_id, 2**31 - 1)
                if status is None or status in FINISHED:
                    return status
                await heard_within(rung, 1.0)

    async def _waited(self, request: Request, run: Row, *, cancels: bool) -> Response:
        waiting = asyncio.create_task(self._ended(run["run_id"]))
        leaving = asyncio.create_task(_left(request))
        try:
            await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                if cancels:
                    await self._runs.cancel(run, "interrupt")
                return Response(status_code=499)
            status = await waiting
        finally:
            for task in (waiting, leaving):
                task.cancel()
        if status is None:
            not_found("Run")
        row = await self._runs.get(run["owner"], run["thread_id"], run["run_id"])
        if status == "timeout":
            raise RefusedRequestError(503, decoded(row["error"])["message"], 2.0)
        values: dict[str, Any]
        if row["error"]:
            values = {"__error__": decoded(row["error"])}
        else:
            state = await self._graph(run).aget_state(_config(run["thread_id"]))
            asked = {"__interrupt__": interrupts_of(state.interrupts)} if state.interrupts else {}
            values = dict(state.values) | asked
        return reply(values, **_located(run))

    def _streamed(self, run: Row, place: int, *, cancels: bool) -> Response:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"} | _located(run)
        headers["Location"] = f"{headers['Content-Location']}/stream"
        return StreamingResponse(
            self._parts(run, place, cancels=cancels), headers=headers,
            media_type="text/event-stream",
        )  # fmt: skip

    async def _parts(self, run: Row, place: int, *, cancels: bool) -> AsyncIterator[str]:
        try:
            with self._database.bells.heard(bell(run["run_id"])) as rung:
                while True:
                    status, found = await self._runs.after(run["run_id"], place)
                    for part in found:
                        place = part["place"]
                        yield f"event: {part['event']}\ndata: {part['data']}\nid: {place}\n\n"
                    if not found and (status is None or status in FINISHED):
                        return
                    if not found:
                        await heard_within(rung, 1.0)
                        yield ": heartbeat\n\n"
        except (asyncio.CancelledError, GeneratorExit):
            if cancels:
                cancelling = asyncio.ensure_future(self._runs.cancel(run, "interrupt"))
                await asyncio.shield(cancelling)
            raise

    # What the requests share

    def _threads(self, request: Request) -> Threads:
        return Threads(self._database, request.state.user, self._rules.threads_per_minute)

    async def _thread(self, request: Request) -> Row:
        return await self._threads(request).get(identifier(request.path_params["thread"], "thread"))

    async def _run(self, request: Request) -> Row:
        thread = identifier(request.path_params["thread"], "thread")
        run = identifier(request.path_params["run"], "run")
        return await self._runs.get(request.state.user, thread, run)

    def _graph(self, row: Row) -> Graph:
        """Return the graph of a thread or a run, for as long as the thread is its owner's."""
        threads = Threads(self._database, row["owner"])
        return with_saver(self._graphs[row["graph_id"]], threads.saver(row["thread_id"]))


async def _left(request: Request) -> None:
    """Wait until the client leaves; the body has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _config(thread_id: UUID, at: Checkpoint | None = None) -> RunnableConfig:
    found: dict[str, Any] = {"thread_id": str(thread_id), "checkpoint_ns": ""}
    if at:
        found |= at.model_dump(exclude_none=True)
    return {"configurable": found}


def _located(run: Row) -> dict[str, str]:
    return {"Content-Location": f"/threads/{run['thread_id']}/runs/{run['run_id']}"}


def _thread(row: Row) -> dict[str, Any]:
    names = ("thread_id", "metadata", "status", "created_at", "updated_at")
    metadata = row["metadata"] | ({"graph_id": row["graph_id"]} if row["graph_id"] else {})
    error = decoded(row["error"]) if row["error"] else None
    return {name: row[name] for name in names} | {
        "metadata": metadata, "config": {}, "values": None, "interrupts": {}, "error": error,
    }  # fmt: skip


def _run(row: Row) -> dict[str, Any]:
    names = (
        "run_id", "thread_id", "assistant_id", "metadata", "status", "multitask_strategy",
        "created_at", "updated_at",
    )  # fmt: skip
    error = decoded(row["error"]) if row["error"] else None
    found = {name: row[name] for name in names}
    return found | {"kwargs": decoded(row["request"]), "attempt": row["attempt"], "error": error}


def _nothing(row: Row) -> dict[str, Any]:
    """Return the state of a thread on which nothing has run."""
    return {
        "values": {}, "next": [], "tasks": [], "metadata": {}, "created_at": None,
        "checkpoint": {"thread_id": row["thread_id"], "checkpoint_ns": "", "checkpoint_id": None},
        "parent_checkpoint": None, "interrupts": [], "checkpoint_id": None,
        "parent_checkpoint_id": None,
    }  # fmt: skip
